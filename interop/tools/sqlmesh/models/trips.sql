MODEL (
  name db.trips,
  kind INCREMENTAL_BY_TIME_RANGE (time_column day),
  partitioned_by (day),
  audits (not_null(columns := (id)), unique_values(columns := (id)))
);

SELECT id, city, day, fare FROM lake.raw.trips
WHERE day BETWEEN @start_date AND @end_date
