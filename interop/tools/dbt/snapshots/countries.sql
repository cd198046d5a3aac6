{% snapshot countries %}
{{ config(target_schema='db', unique_key='city', strategy='timestamp', updated_at='changed', hard_deletes='invalidate') }}
select city, country, changed from {{ ref('raw_cities') }}
{% endsnapshot %}
