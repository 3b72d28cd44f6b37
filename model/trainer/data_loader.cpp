#include "model/trainer/data_loader.hpp"

#include <algorithm>

namespace lockstep {

Sampler::Options sampler_options(const LoaderSettings& settings, const SamplerPolicy& policy,
                                 int64_t epoch) {
  using Division = Sampler::Division;
  Sampler::Options options;
  options.samples = settings.samples;
  options.shuffle = settings.shuffle;
  options.seed = policy.seed;
  options.epoch = settings.set_epoch ? epoch : 0;
  options.division = Division::whole;
  if (settings.iterable) {
    options.shuffle = false;
    if (settings.sampler ==
        SamplerKind::unrepeated) {  // the data set itself gives ranks their part
      options.division = Division::unrepeated;
      options.replicas = policy.replicas;
      options.index = policy.index;
    }
    return options;
  }
  const bool automatic = settings.sampler == SamplerKind::automatic;
  if (settings.sampler == SamplerKind::distributed) {
    options.division = Division::distributed;
    options.drop_last = settings.sampler_drop_last;
  } else if (settings.sampler == SamplerKind::unrepeated) {
    options.division = Division::unrepeated;
  } else if (automatic && policy.distributed && policy.inject) {
    const bool predicts = policy.role == LoaderRole::predict;
    options.division = predicts ? Division::unrepeated : Division::distributed;
    options.shuffle = policy.role == LoaderRole::train || (settings.shuffle && !predicts);
  } else {
    options.epoch = epoch;  // RandomSampler draws anew each epoch, with or without set_epoch
    return options;
  }
  options.replicas = policy.replicas;
  options.index = policy.index;
  return options;
}

RankBatches::RankBatches(const LoaderSettings& settings, const SamplerPolicy& policy, int64_t epoch,
                         std::optional<int64_t> batches)
    : settings_(&settings), replicas_(policy.replicas), index_(policy.index) {
  if (batches) {
    size_ = std::max<int64_t>(0, *batches);
    return;
  }
  sampler_.emplace(sampler_options(settings, policy, epoch));
  const int64_t samples = sampler_->size();
  size_ = settings.drop_last ? samples / settings.batch_size
                             : (samples + settings.batch_size - 1) / settings.batch_size;
}

Batch RankBatches::at(int64_t number) const {
  Batch batch;
  const int64_t begin = number * settings_->batch_size;
  const int64_t end = sampler_ ? std::min(begin + settings_->batch_size, sampler_->size())
                               : begin + settings_->batch_size;
  for (int64_t k = begin; k < end; ++k) {
    batch.samples.push_back(sampler_ ? sampler_->at(k) : k * replicas_ + index_);
  }
  return batch;
}

}  // namespace lockstep
