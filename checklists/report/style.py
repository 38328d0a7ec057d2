"""The style sheet of a report: light and dark, wide and narrow, screen and paper. Contrast is at least 4.5 to 1."""

from __future__ import annotations

STYLE = """
:root{--bg:#fbfaf7;--card:#ffffff;--ink:#1d2126;--soft:#555c66;--line:#dcd9d0;--accent:#0b5c8a;--mark:#ffe58a;
--mark-ink:#1d2126;--good:#1b6b3a;--bad:#a3261d;--open:#6b5310;--advice:#eef5f9;--bed:#efece4;--pipe:#8fb3c9;
--f-ok:#3f8f5f;--f-config:#d98a1f;--f-stack:#c0392b;--f-client:#7b5ea7;--f-network:#3a7fc1;--f-undetermined:#9aa0a8;
--f-model:#4a4f57}
@media (prefers-color-scheme:dark){:root{--bg:#14171b;--card:#1b1f25;--ink:#e7e5df;--soft:#a9afb8;--line:#333943;
--accent:#7fc4ee;--mark:#6b5600;--mark-ink:#fff6d6;--good:#7fd3a0;--bad:#ff9d92;--open:#e6c766;--advice:#182630;
--bed:#262b33;--pipe:#4f7d98;--f-ok:#4fa873;--f-config:#e3a044;--f-stack:#e0675a;--f-client:#a58bd1;--f-network:#5f9fdd;
--f-undetermined:#8a919b;--f-model:#c3c7cd}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--bg);color:var(--ink);font:16px/1.55 "Segoe UI",system-ui,-apple-system,"Helvetica Neue",
Helvetica,"Liberation Sans",Arial,sans-serif;overflow-wrap:anywhere}
header,main,footer{max-width:66rem;margin:0 auto;padding:0 1.25rem}
header{display:flex;justify-content:space-between;align-items:flex-start;gap:1rem;padding-top:1rem;font-size:.875rem;
color:var(--soft)}
.brand{margin:0;letter-spacing:.02em}.brand b{color:var(--ink)}
nav{position:relative}nav summary{cursor:pointer}
nav ul{position:absolute;right:0;z-index:2;margin:.4rem 0 0;padding:.6rem 1rem;list-style:none;background:var(--card);
border:1px solid var(--line);border-radius:.4rem;width:min(20rem,80vw);line-height:1.9}
a{color:var(--accent)}
.skip{position:absolute;left:-999rem}.skip:focus{left:1rem;top:1rem;background:var(--card);padding:.5rem;z-index:3}
h1,h2,h3,h4{line-height:1.25;font-weight:650;text-wrap:balance}
h1{font-size:clamp(1.45rem,1rem + 2.2vw,2.3rem);letter-spacing:-.015em;margin:.2rem 0 .8rem;max-width:26em}
h2{font-size:1.35rem;margin:0 0 .7rem;letter-spacing:-.01em}
h3{font-size:1.08rem;margin:0 0 .5rem}
h4{font-size:1rem;margin:0 0 .4rem}
main>section{padding:2rem 0;border-top:1px solid var(--line)}
main>section.verdict{border-top:0;padding:1.2rem 0 2rem}
section section{margin:1.1rem 0 0;padding:1.1rem 1.25rem 1.25rem;background:var(--card);border:1px solid var(--line);
border-radius:.5rem}
section section section{background:none}
.kicker{margin:0;color:var(--soft);font-size:.9rem}
.verdict h1{border-left:.3rem solid var(--line);padding-left:.9rem}
.verdict.bad h1{border-color:var(--bad)}.verdict.good h1{border-color:var(--good)}
.verdict.open h1{border-color:var(--open)}
p,ul,ol,dl{margin:0 0 .8rem}
ul,ol{padding-left:1.3rem}
.lead{font-size:1.1rem;max-width:46em}
.advice{background:var(--advice);border:1px solid var(--line);border-left:.3rem solid var(--accent);border-radius:.4rem;
padding:.9rem 1.1rem .5rem;margin:0 0 1.2rem;max-width:58rem}
.advice h2{font-size:1rem;margin:0 0 .35rem;color:var(--accent)}
.advice li{font-size:1.05rem;margin-bottom:.4rem}
.advice ul{list-style:none;padding:0}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.3rem,1fr));gap:.7rem;list-style:none;padding:0;
margin:0 0 1.2rem}
.tile{background:var(--card);border:1px solid var(--line);border-radius:.4rem;padding:.7rem .9rem;display:flex;
flex-direction:column;gap:.1rem}
.tile .label,.tile .note{font-size:.85rem;color:var(--soft)}
.tile .value{font-size:1.55rem;line-height:1.25;font-weight:650;letter-spacing:-.01em;font-variant-numeric:tabular-nums}
.tile.word .value{font-size:1.05rem;line-height:1.9}
.tile.bad .value{color:var(--bad)}.tile.good .value{color:var(--good)}
details>summary{cursor:pointer;color:var(--accent);padding:.2rem 0}
.pairs{display:grid;grid-template-columns:minmax(7rem,max-content) 1fr;gap:.15rem 1rem;font-size:.93rem}
.pairs dt{color:var(--soft)}.pairs dd{margin:0;min-width:0}
.words dt{font-weight:650;margin-top:.5rem}.words dd{margin:0;color:var(--soft)}
.words{columns:22rem;column-gap:2rem;font-size:.92rem}.words dt,.words dd{break-inside:avoid}
.words dt{break-after:avoid}
code,pre{font-family:ui-monospace,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:.88em}
code{background:var(--bed);border-radius:.2rem;padding:.05em .3em}
h1 code{background:none;padding:0;font-size:.9em}
a.term{color:inherit;text-decoration:none}
abbr[title]{text-decoration:underline dotted var(--soft);text-underline-offset:.2em;cursor:help}
.scroll{overflow-x:auto;margin:0 0 1rem;border:1px solid var(--line);border-radius:.4rem;background:var(--card)}
table{border-collapse:collapse;width:100%;font-size:.92rem;font-variant-numeric:tabular-nums}
caption{text-align:left;padding:.55rem .8rem;color:var(--soft);font-size:.85rem}
th,td{padding:.45rem .8rem;text-align:left;vertical-align:top;border-top:1px solid var(--line);min-width:4.5rem;
overflow-wrap:normal;word-break:normal}
thead th{font-weight:600;color:var(--soft);font-size:.85rem;white-space:nowrap}
tbody th{font-weight:600}
td code,th code{overflow-wrap:break-word}
.wide td,.even td,.even td code{overflow-wrap:anywhere}
.even table{table-layout:fixed;min-width:46rem}
.even th:first-child{width:10rem;white-space:normal}
.wide td:last-child{min-width:20rem}.wide td:nth-child(2){min-width:13rem}
td:has(.interval){min-width:9rem;vertical-align:middle}
.number{text-align:right;white-space:nowrap}
figure{margin:0}
.figure{margin:0 0 1rem}
.figure.two{display:grid;grid-template-columns:minmax(0,25rem) minmax(0,1fr);gap:1.5rem;align-items:start}
svg{display:block;width:100%;height:auto}
svg.bar{height:2.2rem;border-radius:.3rem}
svg.interval{height:1.1rem;min-width:7rem}
svg.path{max-width:26rem}
svg .axis,svg .rule{fill:var(--line);stroke:var(--line)}
svg.interval .axis{stroke:none}
svg .range{fill:var(--pipe)}svg .mark{fill:var(--ink)}
svg .bed{fill:var(--bed)}svg .pipe{fill:var(--pipe)}
svg text{font:14px "Segoe UI",system-ui,-apple-system,"Liberation Sans",Arial,sans-serif;fill:var(--ink)}
svg .name{font-weight:650}svg .count{fill:var(--soft);font-size:13px}
.f-ok{fill:var(--f-ok)}.f-config{fill:var(--f-config)}.f-stack{fill:var(--f-stack)}.f-client{fill:var(--f-client)}
.f-network{fill:var(--f-network)}.f-undetermined{fill:var(--f-undetermined)}.f-model{fill:var(--f-model)}
.fault{white-space:nowrap}
.dot{display:inline-block;width:.75em;height:.75em;border-radius:.15em;margin-right:.4em;vertical-align:-.02em}
.d-ok{background:var(--f-ok)}.d-config{background:var(--f-config)}.d-stack{background:var(--f-stack)}
.d-client{background:var(--f-client)}.d-network{background:var(--f-network)}
.d-undetermined{background:var(--f-undetermined)}.d-model{background:var(--f-model)}
.bytes{margin:0 0 .9rem}
.bytes figcaption{font-size:.85rem;color:var(--soft);margin-bottom:.25rem}
pre{margin:0;padding:.7rem .9rem;background:var(--bed);border-radius:.4rem;white-space:pre-wrap;overflow-wrap:anywhere;
max-height:22rem;overflow:auto;line-height:1.45}
mark{background:var(--mark);color:var(--mark-ink);border-radius:.15rem;padding:.05em 0}
mark i{opacity:.8}
footer{padding-top:1rem;padding-bottom:2.5rem;color:var(--soft);font-size:.85rem;border-top:1px solid var(--line)}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
@media (max-width:46rem){.figure.two{grid-template-columns:minmax(0,1fr)}section section{padding:.9rem}
.pairs{grid-template-columns:minmax(0,1fr);gap:0}.pairs dd{margin-bottom:.5rem}
th,td{padding:.4rem .55rem}header,main,footer{padding-left:1rem;padding-right:1rem}
.tiles{grid-template-columns:repeat(2,minmax(0,1fr))}.tile.word .value{font-size:1rem}}
@media print{:root{--bg:#fff;--card:#fff}body{font-size:10.5pt}nav,.skip{display:none}pre{max-height:none}
section section,.tile,.advice,tr,figure{break-inside:avoid}h2,h3{break-after:avoid}.scroll{overflow:visible}
.even table{min-width:0}
th,td,.wide td:last-child,.wide td:nth-child(2),td:has(.interval){min-width:0;overflow-wrap:anywhere}
thead th,.number{white-space:normal}
details::details-content{content-visibility:visible;block-size:auto}main>section{padding:1rem 0}}
"""
"""Plain CSS. It loads nothing: `default-src 'none'` stands in the page's policy."""
