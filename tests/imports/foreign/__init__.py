"""The files of all systems that can be imported from."""

from collections.abc import Callable

from tests.imports.foreign.customers import (
    indonesian_customers,
    shopify_customers_new,
    shopify_customers_old,
    woocommerce_customers,
)
from tests.imports.foreign.files import ForeignFile
from tests.imports.foreign.orders import (
    indonesian_orders,
    shopee_orders,
    shopify_orders,
    shopify_orders_old,
    tiktok_orders,
    tokopedia_orders,
    woocommerce_orders,
)
from tests.imports.foreign.products import (
    indonesian_products,
    medusa_products,
    shopify_products_new,
    shopify_products_old,
    woocommerce_products,
)
from tests.imports.shops import Shop

BUILDERS: list[Callable[[Shop], ForeignFile]] = [
    shopify_customers_new, shopify_customers_old, woocommerce_customers, indonesian_customers,
    shopify_products_old, shopify_products_new, woocommerce_products, medusa_products, indonesian_products,
    shopify_orders, shopify_orders_old, woocommerce_orders, tokopedia_orders, tiktok_orders, shopee_orders,
    indonesian_orders,
]  # fmt: skip


def build_all(shop: Shop) -> list[ForeignFile]:
    return [build(shop) for build in BUILDERS]
