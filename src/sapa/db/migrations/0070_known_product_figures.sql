-- The prices and stocks of the products that exist.
-- runs with code since: 0025
-- step: batches
-- over: products

UPDATE products
   SET (least_price, stock, least_stock) = (
       SELECT min(price), sum(inventory_quantity), min(inventory_quantity)
         FROM variants
        WHERE variants.company_id = products.company_id AND variants.product_id = products.id)
 WHERE {batch} AND least_price IS NULL;
