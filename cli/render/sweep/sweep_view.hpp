#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/request.hpp"
#include "io/sweep/sweep_file.hpp"
#include "io/sweep/sweep_filter.hpp"

namespace lockstep::cli {

/// What of a sweep is shown, and in which order. Built before anything runs, so that a wrong name
/// costs nothing.
class SweepView {
 public:
  /// `keys`: those of the sweep, each with one of its values. Throws SweepError.
  SweepView(const SweepRequest& request,
            const std::vector<std::pair<std::string, std::string>>& keys);

  /// The lines to show, in order. They are views into `lines`.
  std::vector<const std::string*> select(const std::map<int64_t, std::string>& lines) const;

 private:
  void read_sort(const std::string& text, const std::vector<std::string>& keys);

  std::vector<SweepFilter> filters_;
  std::string sort_;  ///< empty: by case
  bool descends_ = false;
};

/// The row of a line that `line_of` made.
SweepRow shown_row(const std::string& line);

}  // namespace lockstep::cli
