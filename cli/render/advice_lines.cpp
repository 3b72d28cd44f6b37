#include "cli/render/advice_lines.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "cli/render/answer_lines.hpp"
#include "rehearsal/text/number_text.hpp"
#include "rehearsal/text/wrapped_text.hpp"

namespace lockstep::cli {

namespace {

constexpr size_t page_width = 96;

// What does not fit in the first column goes on below, from "with" where the text has one.
std::vector<std::string> in_column(const std::string& text, size_t width) {
  if (text.size() <= width) {
    return {text};
  }
  const size_t with = text.find(" with ");
  std::string first = with < width ? text.substr(0, with) : wrapped(text, width).front();
  std::vector<std::string> lines =
      wrapped(std::string_view(text).substr(std::min(first.size() + 1, text.size())), page_width);
  lines.insert(lines.begin(), std::move(first));
  return lines;
}

std::string row_of(const Advice::Change& change, size_t width = 30) {
  const std::vector<std::string> lines = in_column(change.text, width);
  std::string row = fmt::format(
      "  {:<{}}{:>12}  {:>10}  {:>10}\n", lines.front(), width, number_text(change.samples_per_s),
      time_text(change.step_time.count()), bytes_text(change.peak.count()));
  for (size_t line = 1; line < lines.size(); ++line) {
    row += fmt::format("    {}\n", lines[line]);
  }
  return row;
}

// A sentence in place of the table.
std::string sentence(const std::string& text) {
  return fmt::format("\n{}\n", fmt::join(wrapped(text, page_width), "\n  "));
}

}  // namespace

std::string largest_batch(const Advice& advice) {
  if (!advice.why_no_batch_size.empty()) {
    constexpr size_t indent = 16;  // of what line() writes without a key
    std::string out;
    for (const std::string& words :
         wrapped("largest data.train.batch_size that fits: unknown, as a short run " +
                     advice.why_no_batch_size,
                 page_width - indent)) {
      out += line("", words);
    }
    return out;
  }
  if (!advice.largest_batch_size) {
    return "";
  }
  return *advice.largest_batch_size == 0
             ? line("", "no smaller data.train.batch_size fits either")
             : line("", fmt::format("largest data.train.batch_size that fits: {}",
                                    *advice.largest_batch_size));
}

std::string what_would_help(const Advice& advice) {
  if (!advice.not_tried.empty()) {
    return sentence("Suggestions and largest batch_size: not tried, because " + advice.not_tried);
  }
  if (!advice.why_no_base.empty()) {
    return sentence("Suggestions: unknown, because a short run " + advice.why_no_base);
  }
  const std::string incomplete =
      advice.stopped.empty()
          ? ""
          : sentence(fmt::format("Suggestions and largest batch_size: incomplete "
                                 "after {}, because {}",
                                 plural(advice.tried, "change"), advice.stopped));
  if (advice.tried == 0 || (advice.changes.empty() && !incomplete.empty())) {
    return incomplete;
  }
  if (advice.changes.empty() || !advice.base) {
    return fmt::format("\nSuggestions: none ({} tried, none was faster or smaller)\n",
                       plural(advice.tried, "change"));
  }
  const std::string title = fmt::format("Suggestions ({} each)", plural(advice.steps, "step"));
  std::string out =
      fmt::format("\n{:<32}{:>12}  {:>10}  {:>10}\n", title, "samples/s", "step time", "memory");
  out += row_of(*advice.base);
  bool has_batch = false;
  for (const Advice::Change& change : advice.changes) {
    out += row_of(change);
    has_batch = has_batch || change.text.find("batch") != std::string::npos;
  }
  return (has_batch ? out + std::string(not_convergence) : out) + incomplete;
}

std::string what_would_fit(const Advice& advice, Bytes capacity) {
  std::string out =
      advice.needed
          ? line("", fmt::format("it needs {} of {} on the fullest device",
                                 bytes_text(advice.needed->count()), bytes_text(capacity.count())))
          : "";
  out += largest_batch(advice);
  if (advice.strategies.empty()) {
    return out;
  }
  const std::string title =
      fmt::format("Strategies that fit ({} each)", plural(advice.steps, "step"));
  out += fmt::format("\n{:<46}{:>12}  {:>10}  {:>10}\n", title, "samples/s", "step time", "memory");
  for (const Advice::Change& change : advice.strategies) {
    out += row_of(change, 44);
  }
  return out;
}

}  // namespace lockstep::cli
