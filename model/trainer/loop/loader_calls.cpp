#include "model/trainer/loop/loader_calls.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "model/user_program/sites.hpp"

namespace lockstep {

LoaderCalls::LoaderCalls(const TrainingContext& context, const TrainerMembership& membership)
    : rank_(context.rank),
      program_(context.program),
      interpreter_(context.interpreter),
      membership_(membership) {}

SamplerPolicy policy_of(const TrainingProgram& program, const TrainerMembership& membership,
                        LoaderRole role) {
  SamplerPolicy policy;
  policy.role = role;
  policy.distributed = membership.trainers > 1;
  policy.inject = program.trainer.inject_sampler;
  policy.replicas = membership.data_parallel_size;
  policy.index = membership.data_parallel_index;
  policy.ranks = membership.trainers;
  policy.rank = membership.trainer_index;
  policy.seed = program.settings.seed;
  const bool joins = role == LoaderRole::train ||
                     (role == LoaderRole::evaluate && program.settings.joins_evaluation);
  if (joins && program.settings.stands_for > 1) {
    policy.distributed = true;
    policy.replicas = program.settings.stands_for;
    policy.joins = true;
  }
  return policy;
}

// overrides/distributed.py, UnrepeatedDistributedSampler.
void LoaderCalls::check_sampler(const LoaderSettings& loader, LoaderRole role) const {
  const Sampler::Options options = sampler_options(loader, policy(role), 0);
  if (!loader.batches && !loader.iterable && options.samples > 0 &&
      options.division == Sampler::Division::unrepeated && Sampler(options).size() == 0) {
    throw ProgramException(site_of(loader.place),
                           "UnrepeatedDistributedSampler needs a sample for every rank");
  }
}

Program LoaderCalls::count_batches(const LoaderSettings& loader, OwnBatches& own) {
  Frame frame;
  if (loader.batches) {
    const SiteId site = site_of(loader.batches->place());
    own.count = co_await interpreter_.expressions().integer_of(*loader.batches, frame, site,
                                                               "the number of batches");
  }
  if (loader.batch_size_of_rank) {
    const SiteId site = site_of(loader.batch_size_of_rank->place());
    own.size = co_await interpreter_.expressions().integer_of(*loader.batch_size_of_rank, frame,
                                                              site, "`batch_size`");
    if (*own.size < 1) {
      // torch/utils/data/sampler.py, BatchSampler
      throw ProgramException(site, fmt::format("batch_size should be a positive integer value, but "
                                               "got batch_size={}",
                                               *own.size));
    }
  }
}

void LoaderCalls::note_batches(const LoaderSettings& loader, int64_t count) const {
  constexpr int64_t most = std::numeric_limits<uint32_t>::max();
  if (rank_.world_size() > 1) {
    rank_.choose(loader.batches_site, ChoiceKind::repeat, static_cast<uint32_t>(most),
                 static_cast<uint32_t>(std::min(count, most)));
  }
}

bool LoaderCalls::goes_on(const LoaderSettings& loader, bool has_more) const {
  if (rank_.world_size() > 1) {
    rank_.choose(loader.batches_site, ChoiceKind::branch, 2, has_more ? 1 : 0);
  }
  return has_more;
}

}  // namespace lockstep
