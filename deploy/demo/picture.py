#!/usr/bin/env python3
"""Draws docs/demo.svg from the demo's result: picture.py out.json docs/demo.svg. Speeds on the left, the loss on the right."""
import json
import sys

WIDTH, HEIGHT, TOP, BOTTOM = 860, 300, 46, 250
INK, FAINT, EVEN, PLANNED, LOST = "#24292f", "#8c959f", "#afb8c1", "#1f6feb", "#cf222e"


def text(x, y, content, size=13, colour=INK, anchor="start", weight="normal"):
    content = str(content).replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" text-anchor="{anchor}" font-weight="{weight}">{content}</text>'


def line(x1, y1, x2, y2, colour=FAINT, extra=""):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" {extra}/>'


def speeds(result, left, right):
    total = result["standalone_sum_tokens_per_second"]
    scale = (BOTTOM - TOP) / (total * 1.05)
    width = (right - left) / 5
    out = [text(left, 24, "tokens per second", weight="bold"), line(left, BOTTOM, right, BOTTOM)]
    bars = [("even", result["even"], EVEN), (result["planned"]["strategy"], result["planned"], PLANNED)]
    for number, (name, run, colour) in enumerate(bars):
        x, height = left + width * (0.7 + 2 * number), run["tokens_per_second"] * scale
        out.append(f'<rect x="{x:.1f}" y="{BOTTOM - height:.1f}" width="{width * 1.3:.1f}" height="{height:.1f}" fill="{colour}" rx="3"/>')
        out.append(text(x + width * 0.65, BOTTOM + 18, name, anchor="middle"))
        label = f"{run['tokens_per_second']:.0f}"
        out.append(text(x + width * 0.65, BOTTOM - height / 2, label, 15, "#ffffff" if number else INK, "middle", "bold"))
        out.append(text(x + width * 0.65, BOTTOM - height / 2 + 17, f"{run['tokens_per_second'] / total:.0%}", 12, "#ffffff" if number else INK,
                        "middle"))
    y = BOTTOM - total * scale
    out += [line(left, y, right, y, INK, 'stroke-dasharray="5 4"'), text(left, y - 5, f"all devices, each alone: {total:.0f}", 12)]
    out.append(text(left, HEIGHT - 12, " + ".join(d["model"] for d in result["devices"]) + " (emulated)", 12, FAINT))
    return out


def losses(result, left, right):
    points = result["losses"]
    low, high = min(p[1] for p in points), max(p[1] for p in points)
    last = points[-1][0]

    def place(step, value):
        return left + (right - left) * (step - 1) / max(last - 1, 1), BOTTOM - (BOTTOM - TOP) * (value - low) / ((high - low) or 1)

    out = [text(left, 24, "loss by step", weight="bold"), line(left, BOTTOM, right, BOTTOM)]
    for mark in (low, (low + high) / 2, high):
        out.append(text(left - 6, place(1, mark)[1] + 4, f"{mark:.1f}", 11, FAINT, "end"))
    for step in range(0, last + 1, 10):
        if step:
            out.append(text(place(step, low)[0], BOTTOM + 16, step, 11, FAINT, "middle"))
    for number, (step, label) in enumerate(result.get("marks", [])):
        x = place(step, low)[0]
        out += [line(x, TOP, x, BOTTOM, LOST, 'stroke-dasharray="3 3"'), text(x + 4, TOP + 10 + 16 * number, label, 11, LOST)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*p) for p in points))
    out.append(f'<polyline points="{path}" fill="none" stroke="{PLANNED}" stroke-width="2.5" stroke-linejoin="round"/>')
    validation = result["planned"]["validation_loss"]
    if validation is not None:
        x, y = place(last, min(max(validation, low), high))
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{INK}"/>', text(x - 6, y - 10, f"validation {validation:.2f}", 12, INK, "end")]
    return out


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        result = json.load(file)
    body = speeds(result, 24, 330) + losses(result, 420, WIDTH - 24)
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="system-ui, sans-serif">'
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>')
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write("\n".join([head, *body, "</svg>"]) + "\n")


if __name__ == "__main__":
    main()
