#include "model/strategy/megatron/megatron_buffers.hpp"

#include <algorithm>

#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/megatron/megatron_sites.hpp"

namespace lockstep {

MegatronBuffers::MegatronBuffers(Replica& replica, const MegatronOptions& options,
                                 const std::vector<ModelChunk>& chunks, const Ranks& ranks,
                                 bool is_first_of_pipeline)
    : replica_(&replica), options_(options), chunks_(chunks), ranks_(ranks) {
  for (size_t chunk = 0; chunk < chunks_.size(); ++chunk) {
    add_chunk(chunk, is_first_of_pipeline);
  }
  count_uses();
}

/// Two chunks, or two ranks, read it: the embedding that is the last layer, too.
bool MegatronBuffers::is_shared(size_t parameter) const {
  const ParameterPlace place = replica_->parameters()[parameter].place;
  return place.tensor == 0 &&
         std::ranges::any_of(replica_->network().layers,
                             [&](const Layer& layer) { return layer.tied_layer == place.layer; });
}

bool MegatronBuffers::is_expert(size_t parameter) const {
  const ParameterPlace place = replica_->parameters()[parameter].place;
  const std::optional<TensorCut>& cut = replica_->network().parameter(place).cut;
  return ranks_.experts && cut && cut->by_experts;
}

// Those of experts are in buffers of their own (expert_parallel_buffers).
void MegatronBuffers::add_chunk(size_t index, bool is_first_of_pipeline) {
  add_buckets(index, false, is_first_of_pipeline);
  if (ranks_.experts) {
    add_buckets(index, true, is_first_of_pipeline);
  }
}

// A weight that another chunk of this rank defines has its gradient there.
void MegatronBuffers::add_buckets(size_t index, bool has_experts, bool is_first_of_pipeline) {
  const ModelChunk& chunk = chunks_[index];
  std::vector<BufferedParameter> parameters;
  for (size_t each = 0; each < replica_->parameters().size(); ++each) {
    const Replica::Parameter& parameter = replica_->parameters()[each];
    const size_t home = parameter.place.layer;
    const bool is_defined_here =
        std::ranges::any_of(chunks_, [&](const ModelChunk& other) { return is_in(other, home); });
    const bool is_copy = !is_defined_here && replica_->holds(each) && index + 1 == chunks_.size();
    if (parameter.trainable && (is_in(chunk, home) || is_copy) && is_expert(each) == has_experts) {
      parameters.push_back(
          {each, replica_->network().parameter(parameter.place).elements(), is_shared(each)});
    }
  }
  BucketOptions options;
  if (options_.use_distributed_optimizer) {
    options.shards = has_experts ? ranks_.experts->ranks : ranks_.all.ranks;
  }
  // Later chunks, and the chunks of later pipeline ranks, have one bucket each: their exchange is
  // behind computation anyway (distributed_data_parallel.py).
  if (options_.overlap_grad_reduce && is_first_of_pipeline && index == 0) {
    constexpr int64_t least = 40'000'000;
    constexpr int64_t of_rank = 1'000'000;
    options.bucket_elements =
        options_.bucket_size.value_or(std::max(least, of_rank * ranks_.all.ranks));
  }
  for (GradientBucket& bucket : megatron_buffer(parameters, options).buckets) {
    buckets_.push_back({.layout = std::move(bucket), .chunk = index, .has_experts = has_experts});
  }
}

void MegatronBuffers::count_uses() {
  for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    for (const BufferedPart& part : buckets_[bucket].layout.parts) {
      for (const ModelChunk& chunk : chunks_) {
        for (size_t layer = chunk.first_layer; layer < chunk.end_layer; ++layer) {
          const std::vector<size_t>& read = replica_->parameters_of(layer);
          if (std::ranges::find(read, part.parameter) != read.end()) {
            uses_.push_back({bucket, layer});
          }
        }
      }
    }
  }
  std::vector<size_t> first_use(buckets_.size(), replica_->network().layers.size());
  for (const Use& use : uses_) {
    first_use[use.bucket] = std::min(first_use[use.bucket], use.layer);
    gather_order_.push_back(use.bucket);
  }
  std::ranges::sort(gather_order_);
  gather_order_.erase(std::ranges::unique(gather_order_).begin(), gather_order_.end());
  std::ranges::stable_sort(gather_order_, {}, [&](size_t each) { return first_use[each]; });
}

std::vector<Slice> MegatronBuffers::allocate_parameters(Rank& rank) {
  std::vector<Slice> values(replica_->parameters().size());
  for (Bucket& bucket : buckets_) {
    bucket.parameters = rank.allocate(Purpose::parameter, replica_->plan().parameter_dtype,
                                      bucket.layout.elements());
    for (const BufferedPart& part : bucket.layout.parts) {
      values[part.parameter] =
          bucket.parameters.part(part.begin - bucket.layout.begin, part.elements);
    }
  }
  for (size_t index = 0; index < values.size(); ++index) {
    const Replica::Parameter& parameter = replica_->parameters()[index];
    if (!parameter.trainable && replica_->holds(index)) {
      values[index] = rank.allocate(Purpose::parameter, replica_->plan().parameter_dtype,
                                    replica_->network().parameter(parameter.place).elements());
    }
  }
  return values;
}

void MegatronBuffers::allocate_gradients(Rank& rank) {
  const DType own = replica_->plan().parameter_dtype;
  const DType dtype =
      options_.grad_reduce_in_fp32 && size_of(own) < size_of(DType::fp32) ? DType::fp32 : own;
  for (Bucket& bucket : buckets_) {
    if (bucket.gradient.buffer == no_buffer) {
      bucket.gradient = rank.allocate(Purpose::gradient, dtype, bucket.layout.elements());
    }
    for (const BufferedPart& part : bucket.layout.parts) {
      Replica::Parameter& parameter = replica_->parameters()[part.parameter];
      parameter.tensor.gradient =
          bucket.gradient.part(part.begin - bucket.layout.begin, part.elements);
      parameter.gradient_is_view = true;
    }
  }
}

void MegatronBuffers::begin_step(Rank& rank) {
  std::vector<Slice> gradients;
  for (Bucket& bucket : buckets_) {
    gradients.push_back(bucket.gradient);
    bucket.pending = 0;
    bucket.reduced = {};
  }
  for (const Use& use : uses_) {
    ++buckets_[use.bucket].pending;
  }
  if (!gradients.empty()) {
    elementwise(rank, Kernel::fill, {}, gradients, 0,
                {replica_->compute(), {}, site_id(megatron_sites::zero_gradients)});
  }
}

void MegatronBuffers::gradients_ready(Rank& rank, size_t layer, Ticket done) {
  for (const Use& use : uses_) {
    Bucket& bucket = buckets_[use.bucket];
    if (use.layer == layer && --bucket.pending == 0 && options_.overlap_grad_reduce) {
      reduce(rank, bucket, done);
    }
  }
}

// Divided before the sum, unless the collective averages. An expert has the tokens of all replicas
// whose ranks hold different ones, so its gradient is divided by the number of all, too.
void MegatronBuffers::reduce(Rank& rank, Bucket& bucket, Ticket ready) {
  if (ranks_.all.ranks == 1) {
    return;
  }
  const SiteId site = site_id(megatron_sites::reduce_gradients);
  const DataRanks& data = ranks_of(bucket);
  const int32_t averaged = options_.average_in_collective ? data.ranks : 1;
  if (averaged != ranks_.all.ranks) {
    ready = elementwise(rank, Kernel::scale, {bucket.gradient}, {bucket.gradient},
                        static_cast<double>(averaged) / ranks_.all.ranks,
                        {replica_->compute(), {}, site});
  } else {
    ready = rank.event({replica_->compute(), {ready}, site});
  }
  if (data.ranks == 1) {
    return;
  }
  const Reduction reduction = options_.average_in_collective ? Reduction::avg : Reduction::sum;
  const CommunicationOptions how{data.group.on, {ready}, site};
  bucket.reduced =
      options_.use_distributed_optimizer
          ? rank.reduce_scatter(data.group.group, bucket.gradient,
                                bucket.gradient.part(shard_begin(bucket), shard_elements(bucket)),
                                reduction, {}, how)
          : rank.all_reduce(data.group.group, bucket.gradient, reduction, how);
  reduced_bytes_.push_back(bucket.gradient.bytes());
}

void MegatronBuffers::finish(Rank& rank) {
  const SiteId site = site_id(megatron_sites::reduce_gradients);
  for (Bucket& bucket : buckets_) {
    if (!options_.overlap_grad_reduce) {
      reduce(rank, bucket, {});
    }
    if (bucket.reduced) {
      rank.event({replica_->compute(), {bucket.reduced}, site});
    }
  }
}

// Parameters after an update

void MegatronBuffers::begin_gather(Rank& rank, size_t index) {
  Bucket& bucket = buckets_[index];
  const DataRanks& data = ranks_of(bucket);
  const SiteId site = site_id(megatron_sites::gather_parameters);
  const Ticket ready = rank.event({replica_->compute(), {}, site});
  bucket.gathered = rank.all_gather(
      data.group.group, bucket.parameters.part(shard_begin(bucket), shard_elements(bucket)),
      bucket.parameters, {data.group.on, {ready}, site});
  gathered_bytes_.push_back(bucket.parameters.bytes());
}

void MegatronBuffers::finish_gather(Rank& rank, size_t index) {
  Bucket& bucket = buckets_[index];
  if (!bucket.gathered) {
    begin_gather(rank, index);
  }
  rank.event({replica_->compute(),
              {std::exchange(bucket.gathered, Ticket{})},
              site_id(megatron_sites::gather_parameters)});
  bucket.is_gathered = true;
}

void MegatronBuffers::gather(Rank& rank) {
  if (!options_.use_distributed_optimizer) {
    return;
  }
  for (Bucket& bucket : buckets_) {
    bucket.is_gathered = ranks_of(bucket).ranks == 1;
  }
  if (!options_.overlap_param_gather) {
    gather_all(rank);
  }
}

// Each bucket is begun when the one before is there (finish_param_sync).
void MegatronBuffers::gather_before(Rank& rank, size_t layer) {
  for (size_t i = 0; i < gather_order_.size(); ++i) {
    const bool is_read = std::ranges::any_of(uses_, [&](const Use& use) {
      return use.bucket == gather_order_[i] && use.layer == layer;
    });
    if (!is_read || buckets_[gather_order_[i]].is_gathered) {
      continue;
    }
    finish_gather(rank, gather_order_[i]);
    if (i + 1 < gather_order_.size()) {
      const Bucket& next = buckets_[gather_order_[i + 1]];
      if (!next.is_gathered && !next.gathered) {
        begin_gather(rank, gather_order_[i + 1]);
      }
    }
  }
}

void MegatronBuffers::gather_all(Rank& rank) {
  for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    if (!buckets_[bucket].is_gathered) {
      finish_gather(rank, bucket);
    }
  }
}

}  // namespace lockstep
