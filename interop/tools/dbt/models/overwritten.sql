{{ config(materialized='incremental', incremental_strategy='insert_overwrite', partition_by=['day']) }}
select id, city, day from {{ ref('trips') }}
{% if is_incremental() %} where day = date '{{ var("until", "2024-03-01") }}' {% endif %}
