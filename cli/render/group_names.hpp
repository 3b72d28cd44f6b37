#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "model/program/journal.hpp"

namespace lockstep::cli {

/// The names of the communicators of a run (Communicator::label), by key.
class GroupNames {
 public:
  explicit GroupNames(const Journal& journal);

  /// Of a communicator that the journal knows, by its key; else "unknown group".
  const std::string& operator[](uint64_t communicator) const;

 private:
  void add_groups_of(const Journal& journal, int32_t rank);

  std::map<uint64_t, std::string> names_;
};

}  // namespace lockstep::cli
