"""What a shop has beside its orders and customers, made inside the database: goods and shipments."""

from bench.loyalty.owner import Connection
from bench.names import CITIES, GOODS

_ID = "lpad(to_hex(n), 8, '0') || left(md5('{}' || n), 16)"

PRODUCTS = f"""
    INSERT INTO products (company_id, id, product_id, name, medias, status, options, tags, types, search_text,
                          created_at, least_price, stock, least_stock)
    SELECT $1, 'prod_01' || {_ID.format("product")}, 'goods-' || n, name, '{{}}', 'active', '[]', '{{}}', '{{}}',
           lower(name) || E'\\ngoods-' || n, now() - n * interval '1 hour', 25000, 3 * (n % 200), n % 200
      FROM (SELECT n, ($3::text[])[n % cardinality($3::text[]) + 1] || ' ' || n AS name
              FROM generate_series(1, $2::bigint) AS n) AS named"""

VARIANTS = f"""
    INSERT INTO variants (company_id, id, product_id, position, key, title, price, inventory_quantity)
    SELECT $1, 'var_0' || size || {_ID.format("variant")}, 'prod_01' || {_ID.format("product")}, size, size || ' kg',
           size || ' kg', 25000 * size, n % 200
      FROM generate_series(1, $2::bigint) AS n
     CROSS JOIN generate_series(1, 3) AS size"""

SHIPMENTS = f"""
    INSERT INTO shipments (company_id, id, order_id, provider, provider_label, fee, currency, shipping_status,
                           service_name, package_handover, delivery, insurance, awb, search_text, created_at)
    SELECT $1, 'shp_01' || {_ID.format("shipment")}, 'order_01' || {_ID.format("order")}, 'custom', 'Custom', 12000,
           'IDR', (ARRAY['draft', 'picked_up', 'in_transit', 'delivered', 'delivered'])[n % 5 + 1], 'Own rider',
           'PICKUP', json_build_object('name', 'Customer ' || n, 'phone', '+62811' || lpad(n::text, 8, '0'),
                                       'address', 'Jl. Merdeka ' || n % 200,
                                       'city', ($3::text[])[n % cardinality($3::text[]) + 1]),
           false, 'AWB' || n, 'customer ' || n, now() - n * interval '1 minute'
      FROM generate_series(1, $2::bigint) AS n"""

CELLS = """
    INSERT INTO counter_cells (company_id, counter, cell, total)
    SELECT $1, 'products', status, count(*) FROM products WHERE company_id = $1 GROUP BY status
     UNION ALL
    SELECT $1, 'shipments', cell, count(*) FROM shipments WHERE company_id = $1 GROUP BY cell"""


async def seed_goods(db: Connection, company_id: int, products: int, shipments: int) -> None:
    """Every shipment is of an order, the first ones first."""
    await db.execute(PRODUCTS, company_id, products, GOODS)
    await db.execute(VARIANTS, company_id, products)
    await db.execute(SHIPMENTS, company_id, shipments, CITIES)
    await db.execute(CELLS, company_id)
