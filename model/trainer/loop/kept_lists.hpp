#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "model/strategy/stage.hpp"

namespace lockstep {

/// Tracks the pass over the data that added the oldest entry of each list of a module: a list that
/// is never emptied holds the outputs of earlier epochs, or of the sanity check, when an epoch
/// ends.
class KeptLists {
 public:
  /// An epoch of training or an evaluation begins; the end of the latter brings back the former.
  void begin_pass(Stage stage, bool is_sanity_check);
  void end_evaluation() { stage_ = Stage::fit; }
  /// A batch of the pass has added an entry.
  void grew(const std::string& name);
  void bound(const std::string& name) { oldest_.erase(name); }
  /// What the list still holds beside entries of the last pass of its stage; empty: nothing, or it
  /// was asked before.
  std::string ask_for_leftovers(const std::string& name);

 private:
  struct Pass {
    Stage stage = Stage::fit;
    int64_t number = 0;
    bool is_sanity_check = false;
    bool told = false;
  };
  Stage stage_ = Stage::fit;
  bool is_sanity_check_ = false;
  std::map<Stage, int64_t> passes_;
  std::map<std::string, Pass, std::less<>> oldest_;
};

}  // namespace lockstep
