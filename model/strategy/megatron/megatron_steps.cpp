#include "model/strategy/megatron/megatron_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockstep {

namespace {

using Content = PipelineMessage::Content;
using Messages = std::vector<PipelineMessage>;

/// One rank's walk through its micro-batches. Messages of one stage come in the order of the
/// micro-batches.
class MegatronWriter {
 public:
  MegatronWriter(const PipelineShape& shape, int32_t rank)
      : shape_(shape),
        rank_(rank),
        received_activations_(static_cast<size_t>(shape.stages_per_rank)),
        received_gradients_(static_cast<size_t>(shape.stages_per_rank)) {}

  bool is_first() const { return rank_ == 0; }
  bool is_last() const { return rank_ + 1 == shape_.ranks; }
  int32_t stage_of(int32_t chunk) const { return chunk * shape_.ranks + rank_; }

  void forward(int32_t chunk, int32_t micro_batch) {
    steps_.push_back(
        {PipelineStep::Kind::compute, {PipelineWork::forward, stage_of(chunk), micro_batch}});
  }
  void backward(int32_t chunk, int32_t micro_batch) {
    steps_.push_back(
        {PipelineStep::Kind::compute, {PipelineWork::backward, stage_of(chunk), micro_batch}});
  }

  // Into the batch that the next exchange() submits. Nothing where the stage has no neighbour.
  void send_activation(int32_t chunk, int32_t micro_batch) {
    add({Content::activation, true, stage_of(chunk), micro_batch}, stage_of(chunk) + 1);
  }
  void send_gradient(int32_t chunk, int32_t micro_batch) {
    add({Content::gradient, true, stage_of(chunk), micro_batch}, stage_of(chunk) - 1);
  }
  void receive_activation(int32_t chunk) {
    int32_t& next = received_activations_[static_cast<size_t>(chunk)];
    add({Content::activation, false, stage_of(chunk), next++}, stage_of(chunk) - 1);
  }
  void receive_gradient(int32_t chunk) {
    int32_t& next = received_gradients_[static_cast<size_t>(chunk)];
    add({Content::gradient, false, stage_of(chunk), next++}, stage_of(chunk) + 1);
  }
  void exchange() {
    if (!batch_.empty()) {
      steps_.push_back({PipelineStep::Kind::exchange, {}, std::exchange(batch_, {})});
    }
  }
  std::vector<PipelineStep> take() { return std::move(steps_); }

 private:
  void add(PipelineMessage message, int32_t other) {
    if (other >= 0 && other < shape_.stages() && shape_.rank_of(other) != rank_) {
      message.peer = shape_.rank_of(other);
      batch_.push_back(message);
    }
  }

  const PipelineShape& shape_;
  int32_t rank_;
  std::vector<int32_t> received_activations_;  ///< by chunk
  std::vector<int32_t> received_gradients_;
  Messages batch_;
  std::vector<PipelineStep> steps_;
};

// forward_backward_pipelining_without_interleaving
std::vector<PipelineStep> steps_of_single_stages(const PipelineShape& shape, int32_t rank) {
  MegatronWriter write(shape, rank);
  const int32_t warmup = std::min(shape.ranks - rank - 1, shape.micro_batches);
  const int32_t remaining = shape.micro_batches - warmup;
  for (int32_t i = 0; i < warmup; ++i) {
    write.receive_activation(0);
    write.exchange();
    write.forward(0, i);
    write.send_activation(0, i);
    write.exchange();
  }
  if (remaining > 0) {
    write.receive_activation(0);
    write.exchange();
  }
  for (int32_t i = 0; i < remaining; ++i) {
    write.forward(0, i + warmup);
    write.send_activation(0, i + warmup);
    write.receive_gradient(0);
    write.exchange();
    write.backward(0, i);
    write.send_gradient(0, i);
    if (i + 1 < remaining) {
      write.receive_activation(0);
    }
    write.exchange();
  }
  for (int32_t i = remaining; i < shape.micro_batches; ++i) {
    write.receive_gradient(0);
    write.exchange();
    write.backward(0, i);
    write.send_gradient(0, i);
    write.exchange();
  }
  return write.take();
}

/// forward_backward_pipelining_with_interleaving
class Interleaved {
 public:
  Interleaved(const PipelineShape& shape, int32_t rank)
      : ranks_(shape.ranks),
        chunks_(shape.stages_per_rank),
        total_(shape.micro_batches * shape.stages_per_rank),
        rank_(rank),
        write_(shape, rank) {
    warmup_ = std::min(total_, (ranks_ - rank - 1) * 2 + (chunks_ - 1) * ranks_);
  }

  std::vector<PipelineStep> steps() {
    write_.receive_activation(0);
    write_.exchange();
    warm_up();
    for (int32_t k = 0; k < total_ - warmup_; ++k) {
      one_of_each(k);
    }
    cool_down();
    return write_.take();
  }

 private:
  // Groups of as many micro-batches as there are ranks go through one chunk after the other.
  int32_t chunk_of(int32_t k, bool is_forward) const {
    const int32_t group = ranks_ * chunks_;
    const int32_t chunk = ((k % group) + group) % group / ranks_;
    return is_forward ? chunk : chunks_ - 1 - chunk;
  }
  int32_t micro_batch_of(int32_t k) const { return k / (ranks_ * chunks_) * ranks_ + k % ranks_; }

  void send_activation_of(int32_t k) {
    write_.send_activation(chunk_of(k, true), micro_batch_of(k));
  }
  void send_gradient_of(int32_t k) { write_.send_gradient(chunk_of(k, false), micro_batch_of(k)); }
  /// What the forward behind number `k` gets, or on the first rank what the last one sends now,
  /// which is behind it by the length of the pipeline.
  void receive_activation_behind(int32_t k, bool is_warm) {
    if (k + 1 >= total_) {
      return;
    }
    if (!write_.is_first() || is_warm) {
      if (!write_.is_first() || chunk_of(k + 1, true) != 0) {
        write_.receive_activation(chunk_of(k + 1, true));
      }
      return;
    }
    const int32_t sent = chunk_of(k - (ranks_ - 1), true);
    if (sent != chunks_ - 1) {
      write_.receive_activation(sent + 1);
    }
  }

  void warm_up() {
    for (int32_t k = 0; k < warmup_; ++k) {
      write_.forward(chunk_of(k, true), micro_batch_of(k));
      send_activation_of(k);
      receive_activation_behind(k, true);
      if (k + 1 == warmup_ && warmup_ < total_ && !write_.is_last()) {
        write_.receive_gradient(chunks_ - 1);
      }
      write_.exchange();
    }
  }

  void one_of_each(int32_t k) {
    const int32_t forward = k + warmup_;
    write_.forward(chunk_of(forward, true), micro_batch_of(forward));
    write_.backward(chunk_of(k, false), micro_batch_of(k));
    // Between two ranks the messages of both directions meet in this order on both sides.
    send_activation_of(forward);
    send_gradient_of(k);
    if (k + 1 < total_ - warmup_) {
      receive_activation_behind(forward, false);
    }
    if (!write_.is_last()) {
      write_.receive_gradient(chunk_of(k + 1, false));
    } else {
      const int32_t sent = chunk_of(k - (ranks_ - 1), false);
      if (sent != 0) {
        write_.receive_gradient(sent - 1);
      }
    }
    write_.exchange();
  }

  void cool_down() {
    if (warmup_ == total_) {
      write_.receive_gradient(chunks_ - 1);
      write_.exchange();
    }
    for (int32_t k = total_ - warmup_; k < total_; ++k) {
      write_.backward(chunk_of(k, false), micro_batch_of(k));
      send_gradient_of(k);
      const int32_t next = chunk_of(k + 1, false);
      if (k + 1 < total_ && !(write_.is_last() && next == chunks_ - 1)) {
        write_.receive_gradient(next);
      }
      write_.exchange();
    }
  }

  int32_t ranks_;
  int32_t chunks_;
  int32_t total_;  ///< forwards of this rank
  int32_t rank_;
  int32_t warmup_ = 0;
  MegatronWriter write_;
};

}  // namespace

std::string why_no_megatron_schedule(const PipelineShape& shape) {
  if (shape.stages_per_rank == 1) {
    return "";
  }
  if (shape.ranks < 2) {
    return "RuntimeError: pipeline-model-parallel size should be greater than 1 with interleaved "
           "schedule";
  }
  if (shape.micro_batches % shape.ranks != 0) {
    return fmt::format(
        "RuntimeError: number of microbatches ({}) is not divisible by "
        "pipeline-model-parallel-size ({}) when using interleaved schedule",
        shape.micro_batches, shape.ranks);
  }
  return "";
}

std::vector<PipelineStep> megatron_steps(const PipelineShape& shape, int32_t rank) {
  return shape.stages_per_rank == 1 ? steps_of_single_stages(shape, rank)
                                    : Interleaved(shape, rank).steps();
}

}  // namespace lockstep
