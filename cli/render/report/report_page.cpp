#include "cli/render/report/report_page.hpp"

#include <fmt/format.h>

#include "cli/render/answer_lines.hpp"
#include "cli/render/render.hpp"
#include "cli/render/report/drawings.hpp"
#include "cli/render/report/report_sections.hpp"
#include "rehearsal/run/configuration.hpp"
#include "rehearsal/text/number_text.hpp"

namespace lockstep::cli {

namespace {

constexpr std::string_view page_style =
    R"(:root{color-scheme:light dark;--text:#20242c;--soft:#667085;
--paper:#fff;--box:#f6f7f9;--edge:#e1e4ea}
@media(prefers-color-scheme:dark){:root{--text:#e4e7ee;--soft:#98a2b3;--paper:#171a21;--box:#1f232c;
--edge:#333a47}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1180px;padding:24px 30px 60px;background:var(--paper);
color:var(--text);font:15px/1.5 system-ui,-apple-system,Segoe UI,sans-serif}
h1{font-size:24px;margin:0 0 2px;font-weight:650}
h2{font-size:17px;margin:34px 0 10px;font-weight:600}
.beside{color:var(--soft);font-weight:400;font-size:13px}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(190px,1fr));gap:12px;
margin-top:20px}
.card{background:var(--box);border:1px solid var(--edge);border-radius:8px;padding:12px 14px}
.card .name{color:var(--soft);font-size:13px}
.card .value{font-size:21px;font-weight:600;font-variant-numeric:tabular-nums}
svg.drawing{display:block;width:100%;height:auto}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:14px;font-variant-numeric:tabular-nums;min-width:420px}
th,td{padding:4px 14px 4px 0;text-align:right;border-bottom:1px solid var(--edge)}
th{color:var(--soft);font-weight:500}
th:first-child,td:first-child{text-align:left;overflow-wrap:anywhere}
ul{padding-left:20px}li{margin:8px 0}li.error b{color:#b3261e}li.warning b{color:#b26a00}
@media(prefers-color-scheme:dark){li.error b{color:#f2716a}li.warning b{color:#f0b04d}}
summary h2{display:inline-block;margin-bottom:4px;cursor:pointer}
pre{background:var(--box);border:1px solid var(--edge);border-radius:8px;padding:12px;
overflow-x:auto;font-size:13px;white-space:pre-wrap;overflow-wrap:anywhere}
code{font-size:13px}
)";

std::string model_of(const Preparation& preparation) {
  if (preparation.network == nullptr) {
    return "";
  }
  const Network& network = *preparation.network;
  return fmt::format("{} ({} parameters) · ", network.name.empty() ? "model" : network.name,
                     count_text(network.parameter_elements()));
}

std::string subtitle_of(const Rehearsal& rehearsal) {
  const Preparation& preparation = rehearsal.run.preparation;
  if (rehearsal.scenario->is_bare_program()) {
    return fmt::format("program of {} · {}", plural(preparation.options.world_size, "rank"),
                       rehearsal.run.machine.name);
  }
  return model_of(preparation) +
         fmt::format("{} · {} · {} · {} · {}", preparation.strategy, rehearsal.run.machine.name,
                     name_of(preparation.plan.activation_dtype), name_of_backend(preparation),
                     versions_text(rehearsal));
}

std::string figure(std::string_view title, std::string_view beside, const Drawing& drawing) {
  return drawing.is_empty()
             ? ""
             : fmt::format("<h2>{} <span class=\"beside\">{}</span></h2>\n{}", markup_text(title),
                           markup_text(beside), drawing.inline_svg());
}

std::string drawings_of(const Rehearsal& rehearsal) {
  if (rehearsal.run.result.journal == nullptr) {
    return "";
  }
  const DrawnSpan span = drawn_span(rehearsal.run);
  const std::string beside =
      span.is_step ? fmt::format("rank 0, {}", time_text((span.end - span.begin).count()))
                   : std::string("rank 0, the whole run");
  return figure(span.is_step ? "A steady step" : "The run", beside, step_drawing(rehearsal)) +
         figure("Memory over the same time",
                "rank 0, as its thread allocates, which is ahead of its device",
                memory_drawing(rehearsal));
}

std::string basis_of(const Rehearsal& rehearsal) {
  std::string items;
  for (const std::string& line : rehearsal.run.basis) {
    items += fmt::format("<li>{}</li>\n", markup_text(line));
  }
  return items.empty() ? "" : "<h2>What the figures are based on</h2>\n<ul>\n" + items + "</ul>\n";
}

}  // namespace

std::string report_page(const Rehearsal& rehearsal, const std::string& command) {
  const std::string title = title_of(rehearsal);
  std::string body = fmt::format("<h1>{}</h1>\n<div class=\"beside\">{}</div>\n",
                                 markup_text(title), markup_text(subtitle_of(rehearsal)));
  if (const std::string why_not = rehearsal.why_no_prediction(); why_not.empty()) {
    body += answers_section(rehearsal) + breakdown_section(rehearsal) + drawings_of(rehearsal) +
            memory_section(rehearsal) + utilization_section(rehearsal) +
            transfers_section(rehearsal) + suggestions_section(rehearsal) +
            layers_section(rehearsal);
  } else {
    body +=
        fmt::format("<p>No prediction: {}.</p>\n", markup_text(why_not)) + drawings_of(rehearsal);
  }
  body += findings_section(rehearsal) + basis_of(rehearsal) +
          fmt::format("<h2>Repeat</h2>\n<pre>{}</pre>\n<div class=\"beside\">lockstep {}</div>\n",
                      markup_text(command), LOCKSTEP_VERSION);
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
      "<title>{}</title>\n<style>\n{}{}</style></head>\n<body>\n{}</body></html>\n",
      markup_text(title), page_style, drawing_style(), body);
}

std::string plot_of_run(const Rehearsal& rehearsal) {
  std::vector<Drawing> drawings;
  for (Drawing& drawing : std::vector{step_drawing(rehearsal), memory_drawing(rehearsal)}) {
    if (!drawing.is_empty()) {
      drawings.push_back(std::move(drawing));
    }
  }
  if (const std::optional<Utilization> found = utilization_of(rehearsal, 0, 200)) {
    drawings.push_back(utilization_drawing(*found, rehearsal.run.result.total_time));
  }
  return svg_file(drawings);
}

}  // namespace lockstep::cli
