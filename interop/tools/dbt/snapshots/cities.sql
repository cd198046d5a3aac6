{% snapshot cities %}
{{ config(target_schema='db', unique_key='city', strategy='check', check_cols=['trips']) }}
select city, trips from {{ ref('by_city') }}
{% endsnapshot %}
