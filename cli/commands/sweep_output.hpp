#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/commands/commands.hpp"
#include "cli/render/sweep/sweep_view.hpp"

namespace lockstep::cli {

/// What a sweep prints and writes. Built before anything runs: throws SweepError for wrong names.
class SweepOutput {
 public:
  /// `values`: of each key of the header; an empty one sets nothing.
  SweepOutput(const Request& request, const SweepHeader& header,
              const std::vector<std::vector<std::string>>& values);

  /// Adds the rows to the answer, and writes the plot. Of an incomplete sweep no file is written.
  void add(const std::map<int64_t, std::string>& lines, bool is_complete, const Style& style,
           Answer& answer) const;

 private:
  const Request& request_;
  SweepHeader header_;
  SweepView view_;
  std::string plot_x_;
};

/// `sweep --merge`: the rows of all shards, as one sweep.
Answer merge_sweeps(const Request& request, const Style& style);

}  // namespace lockstep::cli
