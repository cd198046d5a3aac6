MODEL (name db.by_city, kind FULL, description 'Trips of each city.');

SELECT city, COUNT(*) AS trips, SUM(fare) AS fares FROM db.trips GROUP BY city
