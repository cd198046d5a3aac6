MODEL (name db.last_days, kind INCREMENTAL_BY_UNIQUE_KEY (unique_key city));

SELECT city, MAX(day) AS last_day FROM db.trips
WHERE day BETWEEN @start_date AND @end_date
GROUP BY city
