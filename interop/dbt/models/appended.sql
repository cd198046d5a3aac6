{{ config(materialized='incremental', incremental_strategy='append') }}
select id, city, day from {{ ref('trips') }}
{% if is_incremental() %} where day > (select max(day) from {{ this }}) {% endif %}
