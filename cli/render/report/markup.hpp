#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cli {

/// Text of others as HTML and SVG may hold it, also in quotes.
std::string markup_text(std::string_view text);

/// A table: titles, and lines of as many cells. Cells are text; the first column is to the left.
std::string html_table(const std::vector<std::string>& titles,
                       const std::vector<std::vector<std::string>>& lines);

// Parts of a drawing. Colours are classes of `drawing_style`.
std::string svg_box(double x, double y, double width, double height, std::string_view colour,
                    std::string_view title = "");
std::string svg_line(double x1, double y1, double x2, double y2);
/// `anchor`: start, middle or end.
std::string svg_label(double x, double y, std::string_view anchor, std::string_view text);

/// A part of a legend: the class of a colour, and what it stands for.
struct LegendEntry {
  std::string_view colour;
  std::string_view text;
};
std::string svg_legend(double x, double y, const std::vector<LegendEntry>& entries);

/// The colours of all drawings, in light and dark.
std::string_view drawing_style();

/// A drawing that stands in a page, or alone as a file.
struct Drawing {
  double width = 0;
  double height = 0;
  std::string label;  ///< for whoever does not see it
  std::string parts;

  bool is_empty() const { return parts.empty(); }
  std::string inline_svg() const;
};
/// One below the other, as a file of its own.
std::string svg_file(const std::vector<Drawing>& drawings);

}  // namespace lockstep::cli
