"""Code 128 barcodes that label printers print exactly: their bars are whole dots at 203 dots per inch."""

from reportlab.graphics.barcode.code128 import Code128
from reportlab.lib.units import mm
from reportlab.pdfgen.canvas import Canvas

from sapa.shipping.labels.drawing import Block

DOT = 25.4 / 203 * mm
BAR_DOTS = (4, 3, 2)
"""The widths of the narrowest bar to try, in dots: 0.5 to 0.25 mm."""
QUIET_BARS = 10
"""The blank on either side, in narrowest bars."""
HEIGHT = 17 * mm
INSET = 0.04 * DOT


class InsetCode128(Code128):
    """Its bars are a little narrower, because renderers fill every dot that a bar touches, and ink spreads."""

    def rect(self, x: float, y: float, w: float, h: float) -> None:
        super().rect(x + INSET, y, w - 2 * INSET, h)


def build_barcode(number: str, width: float, *, may_turn: bool) -> Block:
    """As wide as fits. A number that is too long is printed along the roll, or on a page with narrower bars."""
    code = next((code for dots in BAR_DOTS if (code := _build(number, dots)).width <= width), None)
    if code is None and may_turn:
        return _build_upright(number, width)
    if code is None:
        code = _build(number, BAR_DOTS[-1] * width / _build(number, BAR_DOTS[-1]).width)
    left = (width - code.width) / 2
    return Block(HEIGHT, lambda canvas, x, y: code.drawOn(canvas, align_to_dots(x + left), y - HEIGHT))


def align_to_dots(length: float) -> float:
    """So that no edge of a bar lies between two dots."""
    return round(length / DOT) * DOT


def _build(number: str, dots: float) -> Code128:
    bar = dots * DOT
    return InsetCode128(
        number, barWidth=bar, barHeight=HEIGHT, quiet=True, lquiet=QUIET_BARS * bar, rquiet=QUIET_BARS * bar
    )


def _build_upright(number: str, width: float) -> Block:
    code = _build(number, BAR_DOTS[-1])

    def paint(canvas: Canvas, x: float, y: float) -> None:
        canvas.saveState()
        canvas.translate(x + (width + HEIGHT) / 2, align_to_dots(y - code.width))
        canvas.rotate(90)
        code.drawOn(canvas, 0, 0)
        canvas.restoreState()

    return Block(code.width, paint)
