// Where the program is, and what Lightning does on a SIGTERM that comes there
// (trainer/connectors/signal_connector.py).
#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "model/program/fault_port.hpp"
#include "model/trainer/loop/training.hpp"

namespace lockstep {

Program Training::begin_epoch() {
  metrics_.begin_pass(Stage::fit);
  kept_lists_.begin_pass(Stage::fit, false);
  return hooks_.begin_epoch(progress.epoch);
}

void Training::begin_evaluation(Stage stage, bool is_sanity_check) {
  metrics_.begin_pass(stage);
  kept_lists_.begin_pass(stage, is_sanity_check);
}

void Training::end_evaluation() {
  metrics_.end_evaluation();
  kept_lists_.end_evaluation();
}

// Only outputs of batches belong to an epoch: a history of epochs is meant to grow.
void Training::list_grew(const std::string& name) {
  if (batch_ != nullptr) {
    kept_lists_.grew(name);
  }
}

void Training::list_read(const std::string& name, SiteId site) {
  if (batch_ != nullptr) {
    return;
  }
  const std::string leftovers = kept_lists_.ask_for_leftovers(name);
  if (!leftovers.empty()) {
    log_.add({"LS312", site,
              fmt::format("the list `{}` still holds {}: nothing has emptied it", name, leftovers),
              fmt::format("empty it at the end of this hook: - let: {{{}: \"[]\"}}", name)});
  }
}

void Training::note_batches(const LoaderSettings& loader, int64_t count) const {
  constexpr int64_t most = std::numeric_limits<uint32_t>::max();
  if (rank_.world_size() > 1) {
    rank_.choose(loader.batches_site, ChoiceKind::repeat, static_cast<uint32_t>(most),
                 static_cast<uint32_t>(std::min(count, most)));
  }
}

bool Training::goes_on(const LoaderSettings& loader, bool has_more) const {
  if (rank_.world_size() > 1) {
    rank_.choose(loader.batches_site, ChoiceKind::branch, 2, has_more ? 1 : 0);
  }
  return has_more;
}

}  // namespace lockstep
