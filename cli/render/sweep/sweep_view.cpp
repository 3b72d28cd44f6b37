#include "cli/render/sweep/sweep_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "model/core/ensure.hpp"
#include "rehearsal/sweep/sweep_cases.hpp"

namespace lockstep::cli {

namespace {

/// Values in an order: numbers and quantities by size, then texts.
struct SortKey {
  bool is_text = false;
  double number = 0;
  std::string text{};
  auto operator<=>(const SortKey&) const = default;
};

SortKey sort_key(const Value& value) {
  if (value.is(Value::Kind::quantity)) {
    return {false, static_cast<double>(value.quantity().count), ""};
  }
  return value.is_number() ? SortKey{false, value.number(), ""} : SortKey{true, 0, value.text()};
}

struct Sorted {
  const std::string* line;
  std::optional<SortKey> key;  ///< none: the row has no such value
};

}  // namespace

SweepRow shown_row(const std::string& line) {
  std::variant<SweepRow, std::string> read = row_of(line);
  auto* row = std::get_if<SweepRow>(&read);
  ensure(row != nullptr, "a line of a sweep reads back");
  return std::move(*row);
}

SweepView::SweepView(const SweepRequest& request,
                     const std::vector<std::pair<std::string, std::string>>& keys) {
  std::vector<std::string> names;
  for (const auto& [key, text] : keys) {
    names.push_back(key);
  }
  for (const std::string& text : request.where) {
    auto parsed = SweepFilter::parse(text, keys);
    if (const auto* error = std::get_if<SweepFilterError>(&parsed)) {
      throw SweepError(fmt::format("--where '{}': {}", text, error->message), error->remedy);
    }
    filters_.push_back(std::get<SweepFilter>(std::move(parsed)));
  }
  if (!request.sort.empty()) {
    read_sort(request.sort, names);
  }
  if (!request.plot.empty() && !request.plot_y.empty()) {
    const std::string remedy = remedy_for_sweep_name(request.plot_y, names);
    if (!remedy.empty()) {
      throw SweepError(fmt::format("--y: there is no result `{}`", request.plot_y), remedy);
    }
  }
}

void SweepView::read_sort(const std::string& text, const std::vector<std::string>& keys) {
  const size_t colon = text.rfind(':');
  const std::string order = colon == std::string::npos ? "asc" : text.substr(colon + 1);
  if (order != "asc" && order != "desc") {
    throw SweepError(fmt::format("--sort {}: there is no order `{}`", text, order),
                     "write --sort step_time or --sort step_time:desc");
  }
  sort_ = text.substr(0, colon);
  descends_ = order == "desc";
  if (const std::string remedy = remedy_for_sweep_name(sort_, keys); !remedy.empty()) {
    throw SweepError(fmt::format("--sort: there is no result or varied key `{}`", sort_), remedy);
  }
}

std::vector<const std::string*> SweepView::select(
    const std::map<int64_t, std::string>& lines) const {
  std::vector<Sorted> kept;
  for (const auto& [number, line] : lines) {
    const bool needs_row = !filters_.empty() || !sort_.empty();
    const SweepRow row = needs_row ? shown_row(line) : SweepRow();
    if (!std::ranges::all_of(filters_,
                             [&](const SweepFilter& filter) { return filter.keeps(row); })) {
      continue;
    }
    const Value value = sort_.empty() ? Value() : value_in(row, sort_);
    kept.push_back(
        {&line, value.is(Value::Kind::null) ? std::nullopt : std::optional(sort_key(value))});
  }
  std::ranges::stable_sort(kept, [&](const Sorted& left, const Sorted& right) {
    if (!left.key || !right.key) {
      return left.key.has_value() && !right.key.has_value();
    }
    return descends_ ? *right.key < *left.key : *left.key < *right.key;
  });
  std::vector<const std::string*> shown;
  for (const Sorted& one : kept) {
    shown.push_back(one.line);
  }
  return shown;
}

}  // namespace lockstep::cli
