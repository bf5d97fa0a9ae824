"""The look of a page: one column, light or dark as the reader has it, fit for phones and for print.

TOKENS are the colours and sizes, DRAWN is the look of what `report.drawn` draws, REPORT that of a study's report.
"""

from dobandit.report.drawn.svg import FLOOR_STEP, LARGEST_FLOOR

_LIGHT = """--ink: #1b1d21; --soft: #5a5f66; --line: #dfe2e6; --grid: #e8eaed; --paper: #ffffff; --shade: #f5f6f8;
  --accent: #0b4f94; --accent-ink: #ffffff; --accent-faint: #e4edf7; --good: #1c7c54; --warn: #9a5b00;
  --warn-faint: #fdf3e1; --harm: #b3261e; --harm-faint: #fcebea; --chosen: #ffd9a0; --chosen-ink: #1b1d21;
  --context: #e8eef6; --arrow: #6d737b; --data: #9a5200;
  --c0: #004488; --c1: #d97400; --c2: #8a1c5a; --c3: #008a65; --c4: #3a97d0; --c5: #6e6e6e; --c6: #a88c00;
  --c7: #d0453e; --c8: #111111; --c9: #7a5230;"""
_DARK = """--ink: #e9ebee; --soft: #a9afb7; --line: #353a41; --grid: #2b3036; --paper: #15171a; --shade: #1e2125;
  --accent: #8fbff5; --accent-ink: #10202f; --accent-faint: #1d2c3c; --good: #6fcfa3; --warn: #f0b65c;
  --warn-faint: #33270f; --harm: #ff8f87; --harm-faint: #3a1c1a; --chosen: #7a4f10; --chosen-ink: #fff3df;
  --context: #243042; --arrow: #9aa1aa; --data: #ffa24a;
  --c0: #7db4ff; --c1: #ffa24a; --c2: #e57fb8; --c3: #4fd0a6; --c4: #86d0ff; --c5: #b0b0b0; --c6: #e3c94a;
  --c7: #ff8a80; --c8: #f2f2f2; --c9: #cfa079;"""

TOKENS = f"""
:root {{ color-scheme: light dark; {_LIGHT}
  --font: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }}
@media (prefers-color-scheme: dark) {{ :root {{ {_DARK} }} }}
@media print {{ :root {{ color-scheme: light; {_LIGHT} }} }}
"""

_FLOORS = "".join(f".least{floor}{{min-width:{floor}px}}" for floor in range(FLOOR_STEP, LARGEST_FLOOR + 1, FLOOR_STEP))

# A shadow at an edge says that there is more beyond it; it goes when the end is reached.
_SCROLLS = """
.scrolls { overflow-x: auto; max-width: 100%; background:
  linear-gradient(to right, var(--paper) 40%, transparent) 0 0 / 36px 100% no-repeat local,
  linear-gradient(to left, var(--paper) 40%, transparent) 100% 0 / 36px 100% no-repeat local,
  radial-gradient(farthest-side at 0 50%, color-mix(in srgb, var(--ink) 32%, transparent), transparent) 0 0 / 14px 100%
    no-repeat scroll,
  radial-gradient(farthest-side at 100% 50%, color-mix(in srgb, var(--ink) 32%, transparent), transparent) 100% 0 /
    14px 100% no-repeat scroll; }
.on-narrow { display: none; }
@media (max-width: 48rem) { .on-wide { display: none; } .on-narrow { display: block; } }
@media print { .on-wide { display: block; } .on-narrow { display: none; }
  .scrolls { overflow: visible; background: none; } }
"""

_CHARTS = """
svg.drawn { display: block; max-width: 100%; height: auto; font: 12px/1 var(--font);
  font-variant-numeric: tabular-nums; }
svg.drawn text { fill: var(--ink); }
svg.drawn .tick { fill: var(--soft); font-size: 11.5px; }
svg.drawn .heading { font-size: 13px; font-weight: 600; }
svg.drawn .end { text-anchor: end; } svg.drawn .middle { text-anchor: middle; }
svg.drawn .strong { font-weight: 650; }
svg.drawn .quiet { fill: var(--soft); }
svg.drawn .grid { stroke: var(--grid); } svg.drawn .axis { stroke: var(--soft); }
svg.drawn .curve { fill: none; stroke-width: 2; stroke-linejoin: round; }
svg.drawn .leader { fill: none; stroke-width: 1; }
svg.drawn .band { stroke: none; opacity: .15; }
""" + "".join(
    f"svg.drawn .curve.c{i}, svg.drawn .leader.c{i} {{ stroke: var(--c{i}); }} svg.drawn .band.c{i} "
    f"{{ fill: var(--c{i}); }}\n"
    for i in range(10)
)

_CHARTS += """
svg.drawn .dot { fill: var(--ink); } svg.drawn .whisker { stroke: var(--ink); stroke-width: 1.4; opacity: .55; }
svg.drawn .dot.accent { fill: var(--accent); } svg.drawn .curve.accent { stroke: var(--accent); }
svg.drawn .area { fill: var(--accent); opacity: .12; }
svg.drawn .value .whisker { stroke-width: 6; stroke-linecap: round; opacity: .28; }
svg.drawn .value.model .dot { fill: var(--accent); } svg.drawn .value.model .whisker { stroke: var(--accent); }
svg.drawn .value.data .dot { fill: var(--c1); } svg.drawn .value.data .whisker { stroke: var(--c1); }
svg.drawn .bar.more { fill: var(--accent); opacity: .75; } svg.drawn .bar.less { fill: var(--harm); opacity: .8; }
svg.drawn .bar.total { fill: var(--ink); opacity: .82; }
svg.drawn .bar.hope { fill: var(--accent-faint); stroke: var(--accent); stroke-dasharray: 3 2; }
svg.drawn .join { stroke: var(--soft); stroke-dasharray: 2 2; }
svg.drawn a:hover .dot { fill: var(--accent); }
"""

_GRAPH = """
svg.graph .arrow .line { fill: none; stroke: var(--arrow); stroke-linecap: round; }
svg.graph .arrow .head { fill: var(--arrow); }
svg.graph .arrow .touch { fill: none; stroke: transparent; stroke-width: 14; }
svg.graph .arrow.harm .line { stroke: var(--harm); } svg.graph .arrow.harm .head { fill: var(--harm); }
svg.graph .arrow.lit { opacity: 1; } svg.graph .arrow.lit .line { stroke: var(--accent); }
svg.graph .arrow.lit .head { fill: var(--accent); }
svg.graph .arrow.lit.harm .line { stroke: var(--harm); } svg.graph .arrow.lit.harm .head { fill: var(--harm); }
svg.graph .arrow.unlit { opacity: .28; }
svg.graph .weight, svg.graph .note { text-anchor: middle; paint-order: stroke; stroke: var(--paper); stroke-width: 8px;
  stroke-linejoin: round; }
svg.graph .weight.unlit { fill: var(--soft); opacity: .7; }
svg.graph .note { font-size: 11px; fill: var(--soft); }
svg.graph .box rect { fill: var(--paper); stroke: var(--soft); stroke-width: 1.5; }
svg.graph .box .name { font-size: 13px; font-weight: 650; text-anchor: middle; }
svg.graph .chosen rect { fill: var(--chosen); stroke: var(--ink); stroke-width: 2; }
svg.graph .chosen .name { fill: var(--chosen-ink); }
svg.graph .latent rect { stroke-dasharray: 4 3; } svg.graph .latent .name { font-style: italic; }
svg.graph .context rect { fill: var(--context); }
svg.graph .target rect { fill: var(--accent); stroke: var(--accent); }
svg.graph .target .name { fill: var(--accent-ink); }
svg.graph a { cursor: pointer; outline-offset: 3px; }
svg.graph a:hover .line { stroke: var(--accent); } svg.graph a:hover .head { fill: var(--accent); }
svg.graph a:hover rect { stroke: var(--accent); stroke-width: 2.5; }
svg.graph a:focus-visible { outline: 2px solid var(--accent); }
"""

DRAWN = _FLOORS + _SCROLLS + _CHARTS + _GRAPH

_REPORT = """
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 17px/1.55 var(--font); }
main { max-width: 78rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: clamp(1.5rem, 3.2vw, 2.1rem); line-height: 1.2; margin: 0 0 .75rem; text-wrap: balance; }
h2 { font-size: 1.35rem; line-height: 1.25; margin: 0 0 .4rem; }
h1, h2, p, li, th { overflow-wrap: anywhere; }
p { margin: 0 0 .8rem; max-width: 46rem; }
.lead { font-size: 1.1rem; color: var(--soft); }
.message { font-size: 1.15rem; font-weight: 600; max-width: none; text-wrap: balance; }
a { color: var(--accent); }
nav ul { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; list-style: none; margin: 1rem 0 0; padding: 0; }
section { margin-top: 2.5rem; padding-top: 1.75rem; border-top: 1px solid var(--line); }
header + section { margin-top: 1.5rem; }
figure { margin: 1.1rem 0; padding: 1rem; border: 1px solid var(--line); border-radius: 10px; width: fit-content;
  max-width: 100%; }
svg.from-chart { display: block; max-width: 100%; height: auto; }
figcaption { color: var(--soft); font-size: .88rem; margin: 0 0 .8rem; max-width: 56rem; }
.panels { display: flex; flex-wrap: wrap; gap: 1.2rem 1.6rem; }
.panels > div { min-width: 0; }
.table { overflow-x: auto; margin: 1.1rem 0 .6rem; }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; min-width: 100%; }
th, td { padding: .42rem .55rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child { text-align: left; padding-left: .2rem; }
tbody th { font-weight: 600; white-space: normal; min-width: 9rem; }
thead th { color: var(--soft); font-weight: 600; border-bottom: 2px solid var(--line); vertical-align: bottom; }
tbody tr:hover { background: var(--shade); }
.note, .remarks { color: var(--soft); font-size: .9rem; max-width: 56rem; }
.note { margin-bottom: .35rem; }
.remarks { padding-left: 1.2rem; }
@media screen and (max-width: 48rem) {
  body { font-size: 16px; } main { padding: 1.4rem 1rem 3rem; } figure { padding: .8rem .5rem; width: auto; }
  table, tbody { display: block; } thead { position: absolute; width: 1px; height: 1px; overflow: hidden;
    clip-path: inset(50%); }
  tr { display: grid; grid-template-columns: 1fr 1fr; gap: 0 1.2rem; padding: .7rem 0 .6rem;
    border-bottom: 1px solid var(--line); }
  tbody th { grid-column: 1 / -1; border: 0; padding: 0 0 .2rem; font-size: 1rem; }
  td { display: flex; justify-content: space-between; gap: .6rem; border: 0; padding: .12rem 0; white-space: normal; }
  td:empty { display: none; }
  td::before { content: attr(data-label); color: var(--soft); text-align: left; } }
@media screen and (max-width: 26rem) { tr { grid-template-columns: 1fr; } }
@page { margin: 16mm 14mm; }
@media print { html { font-size: 12.4px; } body { font-size: 9.5pt; } main { max-width: none; padding: 0; }
  nav { display: none; }
  figure { border: 0; padding: 0; break-inside: avoid; }
  .panels { flex-wrap: nowrap; } svg.drawn { min-width: 0 !important; } figure + figure svg { max-height: 7cm; }
  .table { overflow: visible; }
  table { font-size: 7.5pt; } th, td { padding: .2rem .3rem; } tbody th { white-space: nowrap; min-width: 0; }
  thead th { white-space: normal; }
  tr, h2, .message { break-inside: avoid; }
  h2, .message { break-after: avoid; } section { break-before: page; } header + section { break-before: auto; } }
"""

CSS = TOKENS + DRAWN + _REPORT
