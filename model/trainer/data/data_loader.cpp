#include "model/trainer/data/data_loader.hpp"

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
    options.shuffle =
        !settings.in_order && (policy.role == LoaderRole::train || (settings.shuffle && !predicts));
  } else {
    options.epoch = epoch;  // RandomSampler draws a new order each epoch, with or without set_epoch
    return options;
  }
  const bool is_own = !automatic && !policy.joins && policy.ranks > 0;
  options.replicas = is_own ? policy.ranks : policy.replicas;
  options.index = is_own ? policy.rank : policy.index;
  return options;
}

RankBatches::RankBatches(const LoaderSettings& settings, const SamplerPolicy& policy, int64_t epoch,
                         const OwnBatches& own)
    : given_(settings.given),
      batch_size_(own.size.value_or(settings.batch_size)),
      replicas_(policy.replicas),
      index_(policy.index) {
  if (own.count) {
    size_ = std::max<int64_t>(0, *own.count);
    return;
  }
  SamplerPolicy of_replica = policy;
  const int64_t first = policy.joins ? 0 : policy.index;
  const int64_t last = policy.joins ? policy.replicas - 1 : policy.index;
  for (of_replica.index = first; of_replica.index <= last; ++of_replica.index) {
    samplers_.emplace_back(sampler_options(settings, of_replica, epoch));
    const int64_t samples = samplers_.back().size();
    size_ = std::max(size_, settings.drop_last ? samples / batch_size_
                                               : (samples + batch_size_ - 1) / batch_size_);
  }
}

void RankBatches::add_samples(const Sampler& sampler, int64_t number, Batch& batch) const {
  const int64_t begin = number * batch_size_;
  const int64_t end = std::min(begin + batch_size_, sampler.size());
  for (int64_t k = begin; k < end; ++k) {
    batch.samples.push_back(sampler.at(k));
  }
}

std::vector<int64_t> RankBatches::list(int64_t batches, bool shuffled) const {
  std::vector<int64_t> samples;
  samples.reserve(static_cast<size_t>(samples_of(batches)));
  for (int64_t number = 0; number < batches; ++number) {
    for (const Sampler& sampler : samplers_) {
      const int64_t end = std::min((number + 1) * batch_size_, sampler.size());
      for (int64_t k = number * batch_size_; k < end; ++k) {
        samples.push_back(shuffled ? sampler.at(k) : sampler.position(k));
      }
    }
    for (int64_t k = 0; samplers_.empty() && k < batch_size_; ++k) {
      samples.push_back((number * batch_size_ + k) * replicas_ + index_);
    }
  }
  return samples;
}

int64_t RankBatches::samples_of(int64_t batches) const {
  int64_t samples = samplers_.empty() ? batches * batch_size_ : 0;
  for (const Sampler& sampler : samplers_) {
    samples += std::min(batches * batch_size_, sampler.size());
  }
  return samples;
}

RankBatches RankBatches::of_replica(int64_t index) const {
  RankBatches other = *this;
  other.index_ = index;
  if (samplers_.size() == 1) {
    other.samplers_.front() = samplers_.front().of_replica(index);
  }
  return other;
}

std::optional<Sampler::Options> RankBatches::turns() const {
  return samplers_.size() == 1 && samplers_.front().takes_turns()
             ? std::optional(samplers_.front().options())
             : std::nullopt;
}

Batch RankBatches::at(int64_t number) const {
  Batch batch;
  batch.given = given_.get();
  for (const Sampler& sampler : samplers_) {
    add_samples(sampler, number, batch);
  }
  for (int64_t k = 0; samplers_.empty() && k < batch_size_; ++k) {
    batch.samples.push_back((number * batch_size_ + k) * replicas_ + index_);
  }
  return batch;
}

}  // namespace lockstep
