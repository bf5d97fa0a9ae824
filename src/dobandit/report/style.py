"""The look of a report's page: one column, light or dark as the reader has it, and fit to print."""

CSS = """
:root { color-scheme: light dark; --ink: #1a1a1a; --soft: #595959; --line: #dcdcdc; --paper: #ffffff;
  --shade: #f5f6f8; --accent: #004488; }
@media (prefers-color-scheme: dark) { :root { --ink: #ececec; --soft: #b0b0b0; --line: #3c3f44; --paper: #17191c;
  --shade: #202327; --accent: #8fc1ff; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 17px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
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
figure { margin: 1.1rem 0; padding: .25rem; background: #ffffff; border: 1px solid var(--line); border-radius: 8px;
  overflow-x: auto; width: fit-content; max-width: 100%; }
figure svg { display: block; height: auto; overflow: visible; }
.table { overflow-x: auto; margin: 1.1rem 0 .6rem; }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; min-width: 100%; }
th, td { padding: .42rem .55rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child { text-align: left; padding-left: .2rem; }
tbody th { font-weight: 600; white-space: normal; min-width: 11.5rem; }
thead th { color: var(--soft); font-weight: 600; border-bottom: 2px solid var(--line); vertical-align: bottom; }
tbody tr:hover { background: var(--shade); }
.note, .remarks { color: var(--soft); font-size: .9rem; max-width: 56rem; }
.note { margin-bottom: .35rem; }
.remarks { padding-left: 1.2rem; }
@media (max-width: 48rem) { tbody th { min-width: 7rem; } }
@media print { :root { --ink: #000; --soft: #444; --line: #bbb; --paper: #fff; --accent: #000; }
  html { font-size: 11px; } body { font-size: 9.5pt; } main { max-width: none; padding: 0; } nav { display: none; }
  figure { border: 0; padding: 0; break-inside: avoid; overflow: visible; }
  figure svg { min-width: 0 !important; } figure + figure svg { width: auto !important; max-height: 6.2cm; }
  .table { overflow: visible; }
  table { font-size: 7.5pt; } th, td { padding: .2rem .3rem; } tbody th { white-space: nowrap; min-width: 0; }
  tr, h2, .message { break-inside: avoid; }
  h2, .message { break-after: avoid; } section { break-before: page; } header + section { break-before: auto; } }
"""
