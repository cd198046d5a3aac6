select * from {{ ref('trips') }} where fare <= 0
