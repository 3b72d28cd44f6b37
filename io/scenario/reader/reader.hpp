#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/scenario/reader/diagnostic.hpp"
#include "io/scenario/reader/node.hpp"

namespace lockstep {

/// State that all reading functions share: the names of the files and the list of complaints. A
/// function that cannot read a value complains and continues, so that one load shows every error.
class Reader {
 public:
  Reader(const std::vector<std::string>& files, std::vector<Diagnostic>& diagnostics)
      : files_(files), diagnostics_(diagnostics) {}

  SourcePlace place(const Mark& mark) const { return {files_[mark.file], mark.line, mark.column}; }
  SourcePlace place(const Node& node) const { return place(node.mark); }

  void fail(const Mark& mark, std::string message, std::string remedy) {
    diagnostics_.push_back({place(mark), mark.length, std::move(message), std::move(remedy)});
  }
  void fail_at(SourcePlace place, std::string message, std::string remedy) {
    diagnostics_.push_back({std::move(place), 1, std::move(message), std::move(remedy)});
  }
  /// "`key` takes an int, not a list".
  void fail_type(const Node& node, std::string_view key, std::string_view expected,
                 std::string remedy = {});

  size_t complaints() const { return diagnostics_.size(); }

 private:
  const std::vector<std::string>& files_;
  std::vector<Diagnostic>& diagnostics_;
};

}  // namespace lockstep
