{{ config(partition_by=['city'], tblproperties={'format-version': '2'}) }}
select id, city, day, fare from {{ ref('raw_trips') }}
where day <= date '{{ var("until", "2024-03-01") }}'
