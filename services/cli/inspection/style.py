"""How the report looks; light and dark as the reader's system is, and readable on paper."""

from typing import Final

STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --dim: #777; --good: #2a7d3f;
  --bad: #b3372b; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1500px; padding: 1.5rem; font: 14px/1.5 system-ui,
  "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif;
  overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; margin: 0 0 .5rem; }
h2 { font-size: 1.2rem; margin: 2rem 0 .5rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1rem 0 .3rem; }
h4 { font-size: .9rem; margin: .5rem 0 .2rem; }
code, pre { font-family: ui-monospace, monospace; font-size: .85em; }
table { border-collapse: collapse; }
th, td { text-align: left; vertical-align: top; padding: .15rem .6rem;
  border: 1px solid var(--line); }
th { background: var(--soft); font-weight: 600; }
td:first-child, td b { white-space: nowrap; }
.facts td { border-width: 0 0 1px; }
.facts td:first-child { color: var(--dim); }
.wide { overflow-x: auto; max-width: 100%; margin: .3rem 0; }
.state { font-size: .8rem; padding: .1rem .5rem; border-radius: 1rem; background: var(--soft);
  border: 1px solid var(--line); vertical-align: middle; font-weight: 400; }
.state.indexed { color: var(--good); } .state.failed { color: var(--bad); }
.note, .more, .lead, .path { color: var(--dim); font-size: .85rem; margin: .1rem 0; }
.warn { color: var(--bad); border-left: 3px solid; padding-left: .5rem; margin: .3rem 0; }
.row { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 1rem;
  border-top: 1px solid var(--line); padding: .4rem 0; }
.row > * { min-width: 0; }
.parent { margin-top: .8rem; padding: .3rem .6rem; border-radius: .3rem;
  background: hsl(var(--hue) 60% 50% / .18); }
.of-parent .chunk { border-left: 5px solid hsl(var(--hue) 60% 50%); }
.of-parent .block { border-left: 2px solid hsl(var(--hue) 60% 50% / .5); }
.chunk { padding-left: .7rem; } .block { padding-left: .6rem; margin-bottom: .4rem; }
.chunk:target { outline: 3px solid hsl(var(--hue) 60% 50%); }
.label { color: var(--dim); font-size: .8rem; } .label b { color: CanvasText; }
.text { margin: .1rem 0; white-space: pre-wrap; }
.heading .text { font-weight: 600; }
pre.text { background: var(--soft); padding: .4rem; }
.grid th, .grid td { font-size: .85rem; white-space: normal; max-width: 18rem;
  overflow-wrap: break-word; }
.grid td:first-child { min-width: 9rem; }
.break { text-align: center; color: var(--dim); font-size: .75rem;
  border-top: 1px dashed var(--line); }
nav a { margin-right: 1.5rem; }
.side { display: grid; gap: 0 1.5rem; grid-template-columns:
  repeat(auto-fit, minmax(min(100%, 30rem), 1fr)); }
.side > * { min-width: 0; }
.verdict { padding: .4rem .7rem; border-left: 5px solid; background: var(--soft); }
.passed { border-color: var(--good); } .declined { border-color: var(--bad); }
.good { color: var(--good); } .bad { color: var(--bad); }
.term { display: inline-block; background: var(--soft); border: 1px solid var(--line);
  border-radius: .7rem; padding: 0 .45rem; margin: 0 .2rem .1rem 0; font-size: .8rem; }
.hits { width: 100%; } .hits td:nth-child(3) { min-width: 9rem; font-size: .8rem; }
.hits td:nth-child(4) { min-width: 15rem; font-size: .85rem; }
.why { margin: 0; padding-left: 1rem; }
.bars { display: flex; width: 8rem; height: .6rem; background: var(--soft); margin: .2rem 0; }
.bar { background: #888; } .bar.vector { background: #4477aa; }
.bar.keyword { background: #cc8833; }
.bar.graph { background: #228866; }
.excerpt { max-width: 48rem; }
@media print { .wide { overflow: visible; } .row { break-inside: avoid; } }
"""
