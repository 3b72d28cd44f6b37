// Attention whose positions ranks divide: its parts between their exchanges, and the layers around
// it that compute by which positions they have.
#include <limits>
#include <vector>

#include "model/network/arithmetic/attention_block.hpp"
#include "model/network/arithmetic/embedding.hpp"
#include "model/network/arithmetic/tensor.hpp"
#include "model/network/attention_part.hpp"
#include "model/network/layer_call.hpp"

namespace lockstep {

CoreWidths core_widths(const Layer& core) {
  if (const auto* grouped = std::get_if<GroupedQueryArguments>(&core.arguments)) {
    return {grouped->num_heads, grouped->num_kv_heads, grouped->head_dim, true,
            grouped->sliding_window};
  }
  const auto& attention = std::get<AttentionArguments>(core.arguments);
  return {attention.num_heads, attention.num_heads, attention.embed_dim / attention.num_heads,
          attention.causal, 0};
}

int64_t positions_of_sample(const Layer& layer) {
  return layer.input.front() * (layer.context ? layer.context->ranks : 1);
}

bool is_divided_core(const Layer& layer) {
  return layer.kind == LayerKind::attention_core && layer.context.has_value();
}

bool has_divided_positions(const Layer& layer) { return layer.context.has_value(); }

namespace {

constexpr size_t scalars_of_forward = 3;
constexpr size_t scalars_of_backward = 1;

/// One part, and the scalars behind the kernel's own.
class PartCall {
 public:
  PartCall(const Layer& layer, LayerCall& call, size_t first_scalar)
      : layer_(layer), call_(call), first_scalar_(first_scalar) {}

  AttentionPart part() const {
    return static_cast<AttentionPart>(static_cast<int>(scalar(attention_part)));
  }
  int64_t groups() const { return static_cast<int64_t>(scalar(attention_groups)); }
  int64_t rows() const { return call_.samples() * layer_.input.front(); }
  AttentionBlock block() const {
    const CoreWidths widths = core_widths(layer_);
    AttentionBlock block;
    block.batch = call_.samples();
    block.positions = layer_.input.front();
    block.heads = widths.heads / groups();
    block.key_heads = widths.key_heads / groups();
    block.head_width = widths.head_width;
    block.causal = widths.causal;
    block.window = widths.window;
    block.ranks = layer_.context->ranks;
    block.first_query_rank = rank_of(first_query_rank);
    block.query_ranks = rank_of(query_ranks);
    block.first_key_rank = rank_of(first_key_rank);
    block.key_ranks = rank_of(key_ranks);
    return block;
  }
  bool begins(AttentionScalar which) const { return scalar(which) != 0; }
  void clear(size_t write) const {
    call_.write(write) = Values(call_.write(write).dtype(), call_.write(write).size());
  }

 private:
  double scalar(AttentionScalar which) const { return call_.scalar(first_scalar_ + which); }
  int32_t rank_of(AttentionScalar which) const { return static_cast<int32_t>(scalar(which)); }

  const Layer& layer_;
  LayerCall& call_;
  size_t first_scalar_;
};

void attend_forward(const PartCall& part, LayerCall& call) {
  if (part.begins(begins_query)) {
    part.clear(0);
    for (int64_t i = 0; i < call.write(1).size(); ++i) {
      call.write(1).set(i, -std::numeric_limits<double>::infinity());
    }
  }
  attend_block(part.block(), call.read(0), call.read(1), call.read(2), call.write(0),
               call.write(1));
}

void attend_backward(const PartCall& part, LayerCall& call) {
  if (part.begins(begins_query)) {
    part.clear(0);
  }
  if (part.begins(begins_key)) {
    part.clear(1);
    part.clear(2);
  }
  attend_block_backward(part.block(), call.read(0), call.read(1), call.read(2),
                        {call.read(3), call.read(4), call.read(5)},
                        {call.write(0), call.write(1), call.write(2)});
}

std::vector<Values*> all_writes(LayerCall& call) {
  std::vector<Values*> writes;
  for (size_t i = 0; i < call.writes(); ++i) {
    writes.push_back(&call.write(i));
  }
  return writes;
}

std::vector<const Values*> all_reads(const LayerCall& call) {
  std::vector<const Values*> reads;
  for (size_t i = 0; i < call.reads(); ++i) {
    reads.push_back(&call.read(i));
  }
  return reads;
}

void execute_part(const Layer& layer, LayerCall& call, bool is_forward) {
  const PartCall part(layer, call, is_forward ? scalars_of_forward : scalars_of_backward);
  switch (part.part()) {
    case AttentionPart::take_apart:
      part_columns(call.read(0), part.rows(), part.groups(), all_writes(call));
      break;
    case AttentionPart::attend:
      is_forward ? attend_forward(part, call) : attend_backward(part, call);
      break;
    case AttentionPart::put_together:
      join_columns(all_reads(call), part.rows(), part.groups(), call.write(0));
      break;
  }
}

/// The rows of a table that belong to a rank's positions, in their order.
class OwnRows {
 public:
  OwnRows(const Layer& layer, double index)
      : positions_{layer.input.front(), layer.context->ranks, static_cast<int32_t>(index)},
        width_(layer.input.back()) {}

  Values taken_from(const Values& table) const {
    Values own(table.dtype(), positions_.count * width_);
    for (int64_t i = 0; i < positions_.count; ++i) {
      own.assign(i * width_, table.slice(positions_.in_sample(i) * width_, width_));
    }
    return own;
  }
  void add_to(const Values& own, Values& table) const {
    Values addition(table.dtype(), table.size());
    for (int64_t i = 0; i < positions_.count; ++i) {
      addition.assign(positions_.in_sample(i) * width_, own.slice(i * width_, width_));
    }
    accumulate(Reduction::sum, table, addition);
  }

 private:
  RankPositions positions_;
  int64_t width_;
};

}  // namespace

bool forward_of_divided_positions(const Layer& layer, LayerCall& call) {
  if (is_divided_core(layer)) {
    execute_part(layer, call, true);
    return true;
  }
  if (layer.kind == LayerKind::positional_embedding && layer.context) {
    const OwnRows rows(layer, call.scalar(3));
    positional_embedding_forward(call.read(0), rows.taken_from(call.read(1)), call.samples(),
                                 call.write(0));
    return true;
  }
  return false;
}

bool backward_of_divided_positions(const Layer& layer, LayerCall& call) {
  if (is_divided_core(layer)) {
    execute_part(layer, call, false);
    return true;
  }
  if (layer.kind == LayerKind::positional_embedding && layer.context) {
    if (call.wants(0)) {
      call.write_cast(0, call.read(0));
    }
    if (call.wants(1)) {
      const OwnRows rows(layer, call.scalar(1));
      Values own(call.write(1).dtype(), elements_of(layer.input));
      positional_embedding_weight_gradient(call.read(0), call.samples(), own);
      rows.add_to(own, call.write(1));
    }
    return true;
  }
  return false;
}

}  // namespace lockstep
