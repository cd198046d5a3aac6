{{ config(materialized='incremental', incremental_strategy='merge', unique_key='city') }}
select city, max(day) as last_day, count(*) as trips from {{ ref('trips') }} group by city
