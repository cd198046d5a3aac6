MODEL (name db.dear_trips, kind VIEW);

SELECT id, fare FROM db.trips WHERE fare > 10
