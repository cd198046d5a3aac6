{{ config(materialized='incremental', incremental_strategy='append', on_schema_change='append_new_columns') }}
select id, city, day{% if var("until", "2024-03-01")|string >= "2024-03-03" %}, fare{% endif %}
from {{ ref('trips') }}
{% if is_incremental() %} where day > (select max(day) from {{ this }}) {% endif %}
