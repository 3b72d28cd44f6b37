#include "cli/render/report/markup.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "rehearsal/text/printable.hpp"

namespace lockstep::cli {

std::string markup_text(std::string_view text) {
  std::string escaped;
  for (const char letter : printable(text, "\n")) {
    switch (letter) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '"': escaped += "&quot;"; break;
      case '\'': escaped += "&#39;"; break;
      default: escaped += letter;
    }
  }
  return escaped;
}

std::string html_table(const std::vector<std::string>& titles,
                       const std::vector<std::vector<std::string>>& lines) {
  std::string text = "<div class=\"wide\"><table><thead><tr>";
  for (const std::string& title : titles) {
    text += fmt::format("<th>{}</th>", markup_text(title));
  }
  text += "</tr></thead><tbody>\n";
  for (const std::vector<std::string>& line : lines) {
    text += "<tr>";
    for (const std::string& cell : line) {
      text += fmt::format("<td>{}</td>", markup_text(cell));
    }
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

std::string svg_box(double x, double y, double width, double height, std::string_view colour,
                    std::string_view title) {
  const std::string box =
      fmt::format("<rect class=\"{}\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\"",
                  colour, x, y, std::max(width, 0.3), height);
  return title.empty() ? box + "/>\n"
                       : fmt::format("{}><title>{}</title></rect>\n", box, markup_text(title));
}

std::string svg_line(double x1, double y1, double x2, double y2) {
  return fmt::format(
      "<line class=\"grid\" x1=\"{:.2f}\" y1=\"{:.2f}\" x2=\"{:.2f}\" y2=\"{:.2f}\"/>\n", x1, y1,
      x2, y2);
}

std::string svg_label(double x, double y, std::string_view anchor, std::string_view text) {
  return fmt::format("<text x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     markup_text(text));
}

std::string svg_legend(double x, double y, const std::vector<LegendEntry>& entries) {
  constexpr double letter = 6.6;  // pixels, about
  std::string text;
  for (const LegendEntry& entry : entries) {
    text += svg_box(x, y - 9, 10, 10, entry.colour) + svg_label(x + 15, y, "start", entry.text);
    x += 33 + letter * static_cast<double>(entry.text.size());
  }
  return text;
}

std::string_view drawing_style() {
  return R"(.drawing{font:12px system-ui,sans-serif;fill:#3d4451}
.drawing rect{shape-rendering:crispEdges}
.drawing .grid{stroke:#d5d9e0;stroke-width:1}
.drawing .forward{fill:#2f6fde}.drawing .backward{fill:#7b4fc9}.drawing .optimizer{fill:#1f9a63}
.drawing .communication{fill:#e07b1a}.drawing .copies{fill:#8a94a6}.drawing .data{fill:#d64570}
.drawing .host{fill:#5b6b84}.drawing .other{fill:#54a7c9}.drawing .wait{fill:#e3e6eb}
.drawing .checkpoint{fill:#8b6b3f}.drawing .alone{fill:#b3261e}.drawing .other_ranks{fill:#f2b77a}
.drawing .idle{fill:#eef0f3}.drawing .memory{fill:#2f6fde;fill-opacity:.25;stroke:#2f6fde}
.drawing .evaluation{fill:#1f9a63}
@media(prefers-color-scheme:dark){.drawing{fill:#c4cad6}
.drawing .grid{stroke:#363d4a}.drawing .wait{fill:#2d333f}.drawing .idle{fill:#262b35}
.drawing .forward{fill:#5a93f2}.drawing .backward{fill:#a07ee6}.drawing .optimizer{fill:#3fbd84}
.drawing .communication{fill:#f09a45}.drawing .host{fill:#8796b0}.drawing .data{fill:#ec6c92}
.drawing .alone{fill:#f2716a}.drawing .checkpoint{fill:#c19a63}.drawing .other_ranks{fill:#a87338}
.drawing .memory{fill:#5a93f2;fill-opacity:.25;stroke:#5a93f2}}
)";
}

std::string Drawing::inline_svg() const {
  return fmt::format(
      "<svg class=\"drawing\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\">\n{}"
      "</svg>\n",
      width, height, markup_text(label), parts);
}

std::string svg_file(const std::vector<Drawing>& drawings) {
  constexpr double margin = 16;
  constexpr double height_of_title = 22;
  double width = 0;
  double height = margin;
  std::string parts;
  for (const Drawing& drawing : drawings) {
    parts += svg_label(margin, height + 12, "start", drawing.label);
    height += height_of_title;
    parts += fmt::format("<g transform=\"translate({:.0f} {:.0f})\">\n{}</g>\n", margin, height,
                         drawing.parts);
    width = std::max(width, drawing.width + 2 * margin);
    height += drawing.height + margin;
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"drawing\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\">\n<style>{2}"
      ".paper{{fill:#fff}}@media(prefers-color-scheme:dark){{.paper{{fill:#171a21}}}}</style>\n"
      "<rect class=\"paper\" width=\"{0:.0f}\" height=\"{1:.0f}\"/>\n{3}</svg>\n",
      width, height, drawing_style(), parts);
}

}  // namespace lockstep::cli
