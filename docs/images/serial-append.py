"""Draws `serial-append.svg`: strands in time, their segments in the file, and the frontier.

    python3 docs/images/serial-append.py > docs/images/serial-append.svg

Each strand is a row, a segment is what it has written without a fork between. The same segments
stand below as the file, in serial order: what is in front of the frontier is final.
"""

from __future__ import annotations

ROW_PX, LEFT_PX, SCALE_PX, NOW = 46, 120, 62, 6.5
# Name, then for each segment its place in the file, its begin and end in time, and its label.
STRANDS = [
    ("main", [(0, 0.0, 1.5, "A"), (2, 1.5, 3.5, "C"), (4, 3.5, 6.0, "E")]),
    ("first child", [(1, 1.5, 5.0, "B")]),
    ("second child", [(3, 3.5, 8.0, "D")]),
]
BYTES = [1.5, 2.5, 1.5, 2.0, 2.0]
FINAL, WAITING, AHEAD = "#4c9f70", "#e0a84c", "#ffffff"


def box(x: float, y: float, width: float, fill: str, label: str) -> str:
    """A segment."""
    shape = f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="26" rx="3"'
    text = f'<text x="{x + width / 2:.0f}" y="{y + 18:.0f}" text-anchor="middle">{label}</text>'
    return f'{shape} fill="{fill}" stroke="#333333"/>{text}'


def words(x: float, y: float, text: str) -> str:
    """A label."""
    return f'<text x="{x:.0f}" y="{y:.0f}">{text}</text>'


def line(x1: float, y1: float, x2: float, y2: float) -> str:
    """A dashed line."""
    ends = f'x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}"'
    return f'<line {ends} stroke="#333333" stroke-dasharray="4 3"/>'


def strands() -> list[str]:
    """The rows above, and the moment that is shown."""
    drawn = []
    for row, (name, segments) in enumerate(STRANDS):
        y = 40 + row * ROW_PX
        drawn.append(words(8, y + 18, name))
        for place, begin, end, label in segments:
            fill = WAITING if place == 4 else FINAL
            parts = [(begin, min(end, NOW), fill, label), (NOW, end, AHEAD, "…")]
            for left, right, colour, text in parts:
                if left < right:
                    width = (right - left) * SCALE_PX
                    drawn.append(box(LEFT_PX + left * SCALE_PX, y, width, colour, text))
    for row, begin in [(1, 1.5), (2, 3.5)]:
        x = LEFT_PX + begin * SCALE_PX
        drawn.append(line(x, 66, x, 40 + row * ROW_PX))
    now = LEFT_PX + NOW * SCALE_PX
    return [*drawn, line(now, 24, now, 168), words(now - 16, 18, "now")]


def file() -> list[str]:
    """The row below: the file, and its frontier."""
    x, y, drawn = float(LEFT_PX), 204.0, [words(8, 222, "file")]
    for place, length in enumerate(BYTES):
        written = length * 0.6 if place == 3 else length
        fill = WAITING if place == 4 else FINAL
        drawn.append(box(x, y, written * SCALE_PX, fill, "ABCDE"[place]))
        x += written * SCALE_PX
        if place == 3:
            drawn += [line(x, y - 12, x, y + 44), words(x - 24, y + 58, "frontier")]
            drawn.append(box(x, y, (length - written) * SCALE_PX, AHEAD, "…"))
            x += (length - written) * SCALE_PX
    legend = "green: final, in the file · orange: written, waits · white: not yet written"
    return [*drawn, words(8, 296, legend)]


def main() -> None:
    """Writes the drawing to standard output."""
    style = 'font-family="sans-serif" font-size="13"'
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 310" {style}>')
    print('<rect width="760" height="310" fill="#fafafa"/>')
    print("\n".join([*strands(), *file()]))
    print("</svg>")


if __name__ == "__main__":
    main()
