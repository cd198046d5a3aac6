{{ config(materialized='view') }}
select id, fare from {{ ref('trips') }} where fare > 10
