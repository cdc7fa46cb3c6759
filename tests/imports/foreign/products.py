"""Products as other systems export them, with their columns and quirks."""

from typing import Any

from tests.imports.foreign.files import ForeignFile, comma, pick, write_csv, write_xlsx
from tests.imports.shops import Article, Shop

SHOPIFY_PRODUCTS_OLD = (
    "Handle|Title|Body (HTML)|Vendor|Product Category|Type|Tags|Published|Option1 Name|Option1 Value"
    "|Option1 Linked To|Option2 Name|Option2 Value|Variant SKU|Variant Grams|Variant Inventory Tracker"
    "|Variant Inventory Qty|Variant Inventory Policy|Variant Price|Variant Compare At Price|Image Src|Image Position"
    "|Image Alt Text|Gift Card|SEO Title|Variant Image|Variant Weight Unit|Cost per item|Status"
).split("|")
SHOPIFY_PRODUCTS_NEW = (
    "Title|URL handle|Description|Vendor|Product category|Type|Tags|Published on online store|Status|SKU|Barcode"
    "|Option1 name|Option1 value|Option1 Linked To|Price|Price / International|Compare-at price|Inventory tracker"
    "|Inventory quantity|Continue selling when out of stock|Weight value (grams)|Product image URL|Image position"
    "|Image alt text|Variant image URL|Gift card|SEO title"
).split("|")


def shopify_products_old(shop: Shop) -> ForeignFile:
    rows = []
    for article in shop.articles:
        sizes = article.sizes or ["Default Title"]
        for number, size in enumerate(sizes):
            first = {
                "Title": article.name, "Body (HTML)": "<p>Enak</p>", "Type": "Oleh-oleh", "Tags": "lokal, baru",
                "Published": "TRUE", "Option1 Name": "Ukuran" if article.sizes else "Title", "Status": "active",
                "Image Src": f"https://img.example/{article.number}.jpg", "Image Position": "1",
            }  # fmt: skip
            rows.append(pick(_shopify_variant(article, size) | (first if number == 0 else {}), SHOPIFY_PRODUCTS_OLD))
        extra = {"Handle": f"art-{article.number}", "Image Src": "https://img.example/extra.jpg", "Image Position": "2"}
        rows.append(pick(extra, SHOPIFY_PRODUCTS_OLD))
    expected = [
        _expect_article(article, f"art-{article.number}")
        | {"medias": ["https://img.example/extra.jpg"], "tags": ["lokal", "baru"], "types": ["Oleh-oleh"]}
        for article in shop.articles
    ]
    content = write_csv([SHOPIFY_PRODUCTS_OLD, *rows])
    return ForeignFile("shopify-products-old.csv", "shopify", "products", content, expected)


def _shopify_variant(article: Article, size: str) -> dict[str, str]:
    return {
        "Handle": f"art-{article.number}",
        "Option1 Value": size,
        "Variant SKU": article.sku("" if size == "Default Title" else size),
        "Variant Inventory Tracker": "" if article.stock is None else "shopify",
        "Variant Inventory Qty": "" if article.stock is None else str(article.stock or -2),
        "Variant Price": f"{article.price}.00",
        "Variant Compare At Price": f"{article.before}.00" if article.before else "",
    }


def shopify_products_new(shop: Shop) -> ForeignFile:
    rows = []
    for article in shop.articles:
        for number, size in enumerate(article.sizes or ["Default Title"]):
            old = _shopify_variant(article, size)
            row = {
                "URL handle": old["Handle"], "Option1 value": size, "SKU": f"'{old['Variant SKU']}",
                "Price": old["Variant Price"], "Compare-at price": old["Variant Compare At Price"],
                "Inventory tracker": old["Variant Inventory Tracker"],
                "Inventory quantity": old["Variant Inventory Qty"],
            }  # fmt: skip
            row["SKU"] = old["Variant SKU"]
            if number == 0:
                row |= {"Title": article.name, "Description": "Enak", "Status": "Active",
                        "Option1 name": "Ukuran" if article.sizes else "Title"}  # fmt: skip
            rows.append(pick(row, SHOPIFY_PRODUCTS_NEW))
    expected = [_expect_article(article, f"art-{article.number}") for article in shop.articles]
    content = write_csv([SHOPIFY_PRODUCTS_NEW, *rows])
    return ForeignFile("shopify-products-new.csv", "shopify", "products", content, expected)


WOO_PRODUCTS = (
    "ID|Type|SKU|GTIN, UPC, EAN, or ISBN|Name|Published|Is featured?|Visibility in catalog|Short description"
    "|Description|Tax status|In stock?|Stock|Low stock amount|Backorders allowed?|Weight (kg)|Sale price"
    "|Regular price|Categories|Tags|Images|Parent|Position|Attribute 1 name|Attribute 1 value(s)|Attribute 1 visible"
    "|Attribute 1 global|Meta: _seo"
).split("|")


def woocommerce_products(shop: Shop) -> ForeignFile:
    """Variations below all products, by the parent's SKU or id."""
    products, variations = [], []
    for article in shop.articles:
        price = {"Sale price": comma(article.price), "Regular price": comma(article.before)} if article.before else {
            "Regular price": comma(article.price)}  # fmt: skip
        stock = {"Stock": "" if article.stock is None else str(article.stock)}
        product = {
            "ID": str(500 + article.number), "SKU": f"ART-{article.number}", "Name": article.name, "Published": "1",
            "Visibility in catalog": "visible", "Categories": "Oleh-oleh > Khas, Baru", "Tags": "lokal",
            "Images": "https://img.example/a.jpg, https://img.example/b.jpg",
        }  # fmt: skip
        if not article.sizes:
            products.append(pick(product | price | stock | {"Type": "simple"}, WOO_PRODUCTS))
            continue
        attribute = {"Attribute 1 name": "Ukuran", "Attribute 1 value(s)": ", ".join(article.sizes)}
        products.append(pick(product | attribute | {"Type": "variable"}, WOO_PRODUCTS))
        for number, size in enumerate(article.sizes):
            parent = f"ART-{article.number}" if number else f"id:{500 + article.number}"
            row = {"ID": "1", "Type": "variation", "SKU": article.sku(size), "Name": f"{article.name} - {size}",
                   "Published": "1", "Parent": parent, "Attribute 1 name": "Ukuran",
                   "Attribute 1 value(s)": size}  # fmt: skip
            variations.append(pick(row | price | stock, WOO_PRODUCTS))
    expected = [
        _expect_article(article, f"ART-{article.number}", f"ART-{article.number}")
        | {"types": ["Khas", "Baru"], "media": "https://img.example/a.jpg"}
        for article in shop.articles
    ]
    for article, one in zip(shop.articles, expected, strict=True):
        one["variants"] = sorted(one["variants"]) if article.sizes else one["variants"]
    content = write_csv([WOO_PRODUCTS, *products, *variations], encoding="utf-8-sig")
    return ForeignFile("woo-products.csv", "woocommerce", "products", content, expected)


def medusa_products(shop: Shop) -> ForeignFile:
    header = (
        "Product Id|Product Title|Product Handle|Product Status|Product Thumbnail|Product Type Id|Product Image 1"
        "|Product Tag 1|Variant Id|Variant Title|Variant Sku|Variant Barcode|Variant Manage Inventory"
        "|Variant Price EUR|Variant Price Indonesia [IDR]|Variant Price IDR|Variant Option 1 Name"
        "|Variant Option 1 Value"
    ).split("|")
    rows = [
        pick(
            {
                "Product Id": f"prod_{article.number}",
                "Product Title": article.name,
                "Product Handle": f"art-{article.number}",
                "Product Status": "published",
                "Product Tag 1": "lokal",
                "Variant Title": size or article.name,
                "Variant Sku": article.sku(size),
                "Variant Price EUR": "9.5",
                "Variant Price IDR": str(article.price),
                "Variant Option 1 Name": "Ukuran" if size else "",
                "Variant Option 1 Value": size,
            },
            header,
        )
        for article in shop.articles
        for size in article.sizes or [""]
    ]
    expected = []
    for article in shop.articles:
        one = _expect_article(article, f"art-{article.number}")
        one["variants"] = [(title, sku, price, None) for title, sku, price, _ in one["variants"]]
        expected.append(one | {"compareAtPrice": None})
    return ForeignFile("medusa.csv", "medusa", "products", write_csv([header, *rows]), expected)


def indonesian_products(shop: Shop) -> ForeignFile:
    """A workbook with numbers, a title and a row of totals."""
    header = ["Kode Barang", "Nama Barang", "Harga", "Stok", "Kategori", "Keterangan"]
    rows: list[list[Any]] = [
        [a.sku(), a.name, a.price, a.stock if a.stock is not None else "", "Makanan", "Enak"] for a in shop.articles
    ]
    content = write_xlsx([header, *rows, ["Total", "", 123]], ["DAFTAR BARANG"])
    expected = [
        {"productId": a.sku(), "name": a.name, "types": ["Makanan"],
         "variants": [(a.name, a.sku(), a.price, a.stock)]}
        for a in shop.articles
    ]  # fmt: skip
    return ForeignFile("barang.xlsx", "spreadsheet", "products", content, expected)


def _expect_article(article: Article, product_id: str, sku: str | None = None) -> dict[str, Any]:
    stock = None if article.stock is None else article.stock
    titles = [(size, article.sku(size)) for size in article.sizes] or [(article.name, sku or article.sku())]
    return {
        "productId": product_id,
        "name": article.name,
        "status": "active",
        "compareAtPrice": article.before,
        "variants": [(title, code, article.price, stock) for title, code in titles],
    }
