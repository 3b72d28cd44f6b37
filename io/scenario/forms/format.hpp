#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/scenario/forms/key_row.hpp"
#include "io/scenario/reader/reader.hpp"
#include "model/core/dtype.hpp"
#include "model/core/instant.hpp"
#include "model/core/units.hpp"
#include "model/expression/expression.hpp"
#include "model/scenario/cluster_spec.hpp"
#include "model/scenario/data_spec.hpp"
#include "model/scenario/fault_spec.hpp"
#include "model/scenario/model_spec.hpp"
#include "model/scenario/object.hpp"
#include "model/scenario/rank_selection.hpp"
#include "model/scenario/statement.hpp"

namespace lockstep {

/// A form says how a value of one type is spelled: its name on the reference page (`type`), the
/// legal words if it is a choice (`words`), and `read`, which complains and gives nothing when the
/// node is not of that form.
struct FormWithoutWords {
  static std::vector<std::string_view> words() { return {}; }
};

#define LOCKSTEP_FORM(Name, Result, spelled)                                \
  struct Name : FormWithoutWords {                                          \
    static constexpr std::string_view type = spelled;                       \
    static std::optional<Result> read(Reader&, const Node&, const KeyRow&); \
  }

LOCKSTEP_FORM(BoolForm, bool, "bool");
LOCKSTEP_FORM(IntForm, int64_t, "int");
LOCKSTEP_FORM(FloatForm, double, "float");
LOCKSTEP_FORM(TimeForm, Time, "time");
LOCKSTEP_FORM(BytesForm, Bytes, "bytes");
LOCKSTEP_FORM(RateForm, BytesPerSecond, "rate");
LOCKSTEP_FORM(FlopsRateForm, FlopsPerSecond, "flops/s");
LOCKSTEP_FORM(PercentForm, double, "percent");
LOCKSTEP_FORM(InstantForm, Instant, "instant");
LOCKSTEP_FORM(RanksForm, RankSelection, "ranks");
LOCKSTEP_FORM(ExpressionForm, Expression, "expr");
LOCKSTEP_FORM(TextForm, std::string, "text");
LOCKSTEP_FORM(PatternForm, TextPattern, "text with `{expr}`");
LOCKSTEP_FORM(NameForm, std::string, "name");
LOCKSTEP_FORM(NamesForm, std::vector<std::string>, "name or list of names");
LOCKSTEP_FORM(PathForm, std::string, "path");
LOCKSTEP_FORM(AnyForm, PlainValue, "any");
LOCKSTEP_FORM(LinkEndForm, LinkEnd, "`node N` or `gpu N`");
LOCKSTEP_FORM(CopyTargetForm, CopyTarget, "`cpu`, `device` or `gpu N`");
LOCKSTEP_FORM(DTypeNameForm, std::string, "dtype");
#undef LOCKSTEP_FORM

/// The index of the word that the scalar spells; complains with the nearest legal one.
std::optional<size_t> read_word(Reader& reader, const Node& node, const KeyRow& row,
                                const std::vector<std::string_view>& words);

/// The words of an enumeration, in the order of its enumerators from 0.
template <class Enum>
struct WordsOf;

template <class Enum>
struct WordForm {
  static constexpr std::string_view type = "word";
  static std::vector<std::string_view> words() {
    return {WordsOf<Enum>::words.begin(), WordsOf<Enum>::words.end()};
  }
  static std::optional<Enum> read(Reader& reader, const Node& node, const KeyRow& row) {
    const std::optional<size_t> index = read_word(reader, node, row, words());
    return index ? std::optional(static_cast<Enum>(*index)) : std::nullopt;
  }
};

#define LOCKSTEP_WORDS(Enum, ...)                                                 \
  template <>                                                                     \
  struct WordsOf<Enum> {                                                          \
    static constexpr auto words = std::to_array<std::string_view>({__VA_ARGS__}); \
  }

LOCKSTEP_WORDS(Fabric, "infiniband", "roce", "efa", "tcpx", "tcpxo", "tcp");
LOCKSTEP_WORDS(PriceUnit, "node_hour", "gpu_hour");
LOCKSTEP_WORDS(CollectiveModel, "nccl", "gloo", "ring", "tree");
LOCKSTEP_WORDS(ProcessGroupBackend, "nccl", "gloo", "mpi", "horovod");
LOCKSTEP_WORDS(ActivationCheckpointing, "none", "selective", "full");
LOCKSTEP_WORDS(AttentionKind, "flash", "math");
LOCKSTEP_WORDS(MemoryFormat, "contiguous", "channels_last");
LOCKSTEP_WORDS(LossHook, "training_step", "training_step_end");
LOCKSTEP_WORDS(Unpicklable, "model", "transform", "optimizer", "dataloader", "callback");
LOCKSTEP_WORDS(SamplerKind, "auto", "distributed", "unrepeated", "none");
LOCKSTEP_WORDS(ReduceOp, "sum", "avg", "product", "min", "max");
LOCKSTEP_WORDS(ForwardThrough, "strategy", "module");
LOCKSTEP_WORDS(ClipAlgorithm, "norm", "value");
#undef LOCKSTEP_WORDS

struct DTypeForm {
  static constexpr std::string_view type = "word";
  static std::vector<std::string_view> words() {
    return {"fp32", "fp64", "bf16", "fp16", "int64", "int32", "uint8", "bool"};
  }
  static std::optional<DType> read(Reader& reader, const Node& node, const KeyRow& row);
};

/// The usual form of a member's type.
template <class T>
struct FormOfType {
  using type = WordForm<T>;
};
#define LOCKSTEP_FORM_OF(Type, Form) \
  template <>                        \
  struct FormOfType<Type> {          \
    using type = Form;               \
  }
LOCKSTEP_FORM_OF(bool, BoolForm);
LOCKSTEP_FORM_OF(int64_t, IntForm);
LOCKSTEP_FORM_OF(double, FloatForm);
LOCKSTEP_FORM_OF(Time, TimeForm);
LOCKSTEP_FORM_OF(Bytes, BytesForm);
LOCKSTEP_FORM_OF(BytesPerSecond, RateForm);
LOCKSTEP_FORM_OF(FlopsPerSecond, FlopsRateForm);
LOCKSTEP_FORM_OF(Instant, InstantForm);
LOCKSTEP_FORM_OF(RankSelection, RanksForm);
LOCKSTEP_FORM_OF(Expression, ExpressionForm);
LOCKSTEP_FORM_OF(std::string, TextForm);
LOCKSTEP_FORM_OF(TextPattern, PatternForm);
LOCKSTEP_FORM_OF(PlainValue, AnyForm);
LOCKSTEP_FORM_OF(LinkEnd, LinkEndForm);
LOCKSTEP_FORM_OF(CopyTarget, CopyTargetForm);
LOCKSTEP_FORM_OF(DType, DTypeForm);
#undef LOCKSTEP_FORM_OF
template <class T>
using FormOf = typename FormOfType<T>::type;

/// Complains unless minimum <= value <= maximum of the row.
bool check_range(Reader& reader, const Node& node, const KeyRow& row, double value);

/// Where a scalar's own text begins: behind the quote of a quoted one.
SourcePlace text_place(const Reader& reader, const Node& node);

}  // namespace lockstep
