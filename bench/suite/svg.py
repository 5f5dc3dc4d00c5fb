"""A small writer of SVG charts that are readable on light and dark pages."""

from html import escape

STYLE = """
  .back { fill: #ffffff } text { font: 11px system-ui, sans-serif; fill: #333333 } .title { font-weight: 600; font-size: 12px }
  .grid { stroke: #dddddd } .axis { stroke: #888888 } .small { font-size: 9px }
  @media (prefers-color-scheme: dark) {
    .back { fill: #1b1d23 } text { fill: #d8d8d8 } .grid { stroke: #3a3d45 } .axis { stroke: #8a8d95 }
  }
"""


class Svg:
    def __init__(self, width, height):
        self.width, self.height, self.parts = width, height, []

    def line(self, x1, y1, x2, y2, kind):
        self.parts.append(f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>')

    def text(self, x, y, text, anchor="start", kind="", turned=0):
        turn = f' transform="rotate({turned} {x:.1f} {y:.1f})"' if turned else ""
        self.parts.append(
            f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{turn}>{escape(text)}</text>'
        )

    def box(self, x, y, width, height, colour, hint=""):
        title = f"<title>{escape(hint)}</title>" if hint else ""
        place = f'x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" height="{max(height, 0.5):.1f}"'
        self.parts.append(f'<rect {place} fill="{colour}">{title}</rect>')

    def curve(self, points, colour, width=1.5, hint=""):
        title = f"<title>{escape(hint)}</title>" if hint else ""
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        stroke = f'fill="none" stroke="{colour}" stroke-width="{width}" stroke-linejoin="round"'
        self.parts.append(f'<polyline points="{places}" {stroke}>{title}</polyline>')
        for x, y in points:
            self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{width + 0.7:.1f}" fill="{colour}">{title}</circle>')

    def __str__(self):
        size = f'width="{self.width:.0f}" height="{self.height:.0f}" viewBox="0 0 {self.width:.0f} {self.height:.0f}"'
        body = "\n".join(self.parts)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n<style>{STYLE}</style>\n'
            f'<rect class="back" width="100%" height="100%"/>\n{body}\n</svg>\n'
        )
