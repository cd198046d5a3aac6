select city, count(*) as trips, sum(fare) as fares from {{ ref('trips') }} group by city
