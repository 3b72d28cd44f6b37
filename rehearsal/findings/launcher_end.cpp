#include "rehearsal/findings/launcher_end.hpp"

#include <fmt/format.h>

#include "rehearsal/findings/met_by_name.hpp"

namespace lockstep::cli {

// subprocess_script.py, _ChildProcessObserver (2.1), which looks after the children of a node's
// first process; torch/distributed/elastic/agent/server/api.py.
void tell_launcher(const OneRun& run, DiagnosisOptions& options) {
  const Preparation& preparation = run.preparation;
  const Launch& launch = preparation.placement.launch;
  const bool by_torchrun = launch.launcher == "torchrun";
  const bool by_horovod = goes_through_horovod(run) && launch.is_external();
  const bool by_lightning = launch.launcher == "lightning" && launch.start == StartMethod::script &&
                            preparation.lightning >= Version{2, 1, 0};
  if (preparation.scenario->is_bare_program() || (!by_torchrun && !by_horovod && !by_lightning)) {
    return;
  }
  for (size_t rank = 0; rank < run.result.ends.size(); ++rank) {
    const RankEnd::Kind kind = run.result.ends[rank].kind;
    const auto number = static_cast<int32_t>(rank);
    const bool is_child = by_torchrun || by_horovod || launch.place_of(number).local_rank != 0;
    if ((kind == RankEnd::Kind::raised || kind == RankEnd::Kind::lost) && is_child) {
      options.failed.add(number);
    }
  }
  if (options.failed.empty()) {
    return;
  }
  if (by_horovod) {  // horovodrun and mpirun end the job, on all of its nodes
    options.after_failure = fmt::format(
        "{} that {} failed, and ends all processes; those that wait for {} raise "
        "HorovodInternalError within milliseconds",
        launch.launcher + " sees",
        options.failed.phrase() + (options.failed.size() == 1 ? " has" : " have"),
        options.failed.size() == 1 ? "it" : "them");
    return;
  }
  options.after_failure =
      fmt::format("{} that {} failed, and ends all processes of that node{}",
                  by_torchrun ? "torchrun sees" : "Lightning's launcher sees within 5 s",
                  options.failed.phrase() + (options.failed.size() == 1 ? " has" : " have"),
                  launch.nodes > 1 ? "; those of other nodes wait on" : "");
}

}  // namespace lockstep::cli
