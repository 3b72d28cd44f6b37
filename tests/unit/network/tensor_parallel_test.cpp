// What parallelize_module is asked for, and what it makes of a network.
#include "model/network/tensor_parallel/parallel_style.hpp"

#include <catch2/catch.hpp>

#include "model/network/build.hpp"
#include "model/network/tensor_cut.hpp"
#include "model/network/tensor_parallel/cut_network.hpp"

using namespace lockstep;

namespace tensor_parallel_test {

namespace {

using Kind = ParallelStyle::Kind;

ParallelStyle style(const std::string& text) {
  const ReadStyle read = read_parallel_style(text);
  INFO(text << ": " << read.why_not);
  REQUIRE(read.style.has_value());
  return *read.style;
}

LayerDescription linear_named(const std::string& name, int64_t in, int64_t out) {
  LayerDescription layer{.kind = "Linear"};
  layer.arguments = {{"in_features", in}, {"out_features", out}, {"name", name}};
  return layer;
}

/// up: 8 to 16 features, down: back to 8, with biases.
Network feed_forward() {
  NetworkDescription description;
  description.name = "feed forward";
  description.input = Shape{8};
  description.layers = {linear_named("block.up", 8, 16), LayerDescription{.kind = "GELU"},
                        linear_named("block.down", 16, 8)};
  description.loss = LayerDescription{.kind = "MSELoss"};
  BuildResult built = build_network(description);
  REQUIRE(built.ok());
  return built.network;
}

CutNetwork cut_by_text(const std::vector<std::pair<std::string, std::string>>& plan,
                       int32_t ranks = 2) {
  ParallelPlan parallel;
  for (const auto& [module, text] : plan) {
    parallel.emplace_back(module, style(text));
  }
  return cut_network(feed_forward(), parallel, ranks);
}

}  // namespace

namespace {

/// An embedding into 8 positions, a mixture of experts and a Linear.
CutNetwork cut_mixture(std::vector<NamedArgument> more, bool by_positions, int32_t ranks = 2) {
  NetworkDescription description;
  description.input = Shape{8};
  description.input_dtype = DType::int64;
  more.insert(more.begin(), {{"embed_dim", int64_t{4}},
                             {"hidden_dim", int64_t{6}},
                             {"num_experts", int64_t{4}},
                             {"top_k", int64_t{2}},
                             {"name", std::string("moe")}});
  description.layers = {
      {.kind = "Embedding",
       .arguments = {{"", int64_t{16}}, {"", int64_t{4}}, {"name", std::string("tokens")}}},
      {.kind = "MixtureOfExperts", .arguments = std::move(more)},
      linear_named("head", 4, 16)};
  const BuildResult built = build_network(description);
  REQUIRE(built.ok());
  ParallelPlan plan{{"moe.experts", style("ExpertParallel()")}};
  if (by_positions) {
    plan.emplace_back("tokens", style("RowwiseParallel(input_layouts=Replicate(), "
                                      "output_layouts=Shard(1))"));
    plan.emplace_back("head", style("ColwiseParallel(input_layouts=Shard(1), "
                                    "output_layouts=Replicate())"));
  }
  return cut_network(built.network, plan, ranks);
}

const Layer& mixture_in(const CutNetwork& cut) {
  for (const Layer& layer : cut.network.layers) {
    if (layer.kind == LayerKind::mixture_of_experts) {
      return layer;
    }
  }
  FAIL("a mixture is left");
  return cut.network.layers.front();
}

}  // namespace

TEST_CASE("ExpertParallel gives each rank some experts, and the router whole") {
  const CutNetwork cut = cut_mixture({{"grouped", true}}, true);
  INFO(cut.why_not);
  REQUIRE(cut.why_not.empty());
  CHECK(cut.notes.empty());
  const Layer& layer = mixture_in(cut);
  CHECK(std::get<MixtureArguments>(layer.arguments).own_experts() == 2);
  CHECK(layer.input == Shape{4, 4});  // its own positions
  CHECK(layer.parameters[0].shape == Shape{4, 4});
  CHECK(layer.parameters[0].gradient_is_partial);
  CHECK_FALSE(layer.parameters[0].cut.has_value());
  CHECK(layer.parameters[1].shape == Shape{2, 6, 4});
  REQUIRE(layer.parameters[1].cut.has_value());
  // The second rank has the second half of the tensor: experts 2 and 3.
  CHECK(layer.parameters[1].cut->runs_of(1).front().in_whole == 2 * 6 * 4);
  // Half of the FLOPs: 4 positions, each with two experts of three products, and the router.
  CHECK(layer.work_of(Pass::forward).flops == Flops(4 * (2 * 3 * 48 + 32)));
  const CutNetwork uneven = cut_mixture({{"grouped", true}, {"imbalance", 1.5}}, true);
  CHECK(mixture_in(uneven).work_of(Pass::forward).flops == Flops(6 * (2 * 3 * 48 + 32)));
}

TEST_CASE("ExpertParallel of tokens that all ranks have is noted, as each computes them again") {
  const CutNetwork cut = cut_mixture({{"grouped", true}}, false);
  REQUIRE(cut.why_not.empty());
  REQUIRE(cut.notes.size() == 1);
  CHECK(cut.notes.front().find("2 times") != std::string::npos);
  CHECK_FALSE(mixture_in(cut).parameters[0].gradient_is_partial);
}

TEST_CASE(
    "features that cannot be divided, and names that fit nothing, are refused with a remedy") {
  CHECK(cut_by_text({{"block.up", "ColwiseParallel()"}}, 3).remedy ==
        "choose a tensor_parallel_size that divides 16: 2 or 4");
  CHECK(cut_by_text({{"block.upp", "ColwiseParallel()"}}).remedy == "did you mean `block.up`?");
  CHECK(cut_by_text({{"head", "ColwiseParallel()"}}).remedy ==
        "name a layer, or a module in the names of layers: block.up, block.down");
  CHECK(read_parallel_style("ColumnParallel()").why_not ==
        "unknown style `ColumnParallel`; did you mean `ColwiseParallel`?");
}

TEST_CASE("experts that cannot be divided are refused with a remedy") {
  CHECK(cut_mixture({}, true).remedy == "write `grouped: true` for the layer");
  const CutNetwork three = cut_mixture({{"grouped", true}}, false, 3);
  CHECK(three.why_not == "its 4 experts cannot be divided among 3 ranks");
  CHECK(three.remedy == "choose a tensor_parallel_size that divides 4: 1, 2 or 4");
  CHECK_FALSE(three.is_unmodelled);
  CHECK(cut_mixture({{"grouped", true}, {"capacity_factor", 2.0}}, true).is_unmodelled);
  CHECK(cut_mixture({{"grouped", true}, {"aux_loss_coef", 0.1}}, true).is_unmodelled);
  CHECK(cut_by_text({{"block.up", "ExpertParallel()"}}).why_not ==
        "ExpertParallel is for the experts of a mixture");
}

TEST_CASE("styles are read as Python writes them, with torch's defaults") {
  CHECK(style("colwise").kind == Kind::column);
  CHECK(style("ColwiseParallel()").input == TensorLayout::replicated);
  CHECK(style("ColwiseParallel()").output == TensorLayout::features);
  CHECK(style(" ColwiseParallel( output_layouts = Replicate() ) ").output ==
        TensorLayout::replicated);
  CHECK(style("rowwise").input == TensorLayout::features);
  CHECK(style("RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1))").output ==
        TensorLayout::sequence);
  CHECK(style("SequenceParallel(sequence_dim=1)").kind == Kind::sequence);
  const ParallelStyle input = style(
      "PrepareModuleInput(input_layouts=(Shard(1), None), desired_input_layouts=(Replicate(), "
      "None))");
  CHECK(input.kind == Kind::input);
  CHECK(input.input == TensorLayout::sequence);
  CHECK(input.output == TensorLayout::replicated);
  // style.py: Linears give plain tensors, SequenceParallel and PrepareModuleInput give DTensors.
  CHECK(style("colwise").local_output);
  CHECK_FALSE(style("sequence").local_output);
  CHECK_FALSE(input.local_output);
  CHECK(style("SequenceParallel(use_local_output=True)").local_output);
}

TEST_CASE("what is no style says why") {
  for (const char* text :
       {"", "Colwise()", "ColwiseParallel(", "ColwiseParallel(layouts=Replicate())",
        "ColwiseParallel(input_layouts=Shard(0))", "ColwiseParallel(input_layouts)",
        "SequenceParallel(sequence_dim=0)", "SequenceParallel(input_layouts=Shard(1))",
        "PrepareModuleInput(output_layouts=Shard(1))", "ColwiseParallel(use_local_output=yes)"}) {
    INFO(text);
    const ReadStyle read = read_parallel_style(text);
    CHECK_FALSE(read.style.has_value());
    CHECK_FALSE(read.why_not.empty());
    CHECK_FALSE(read.is_unmodelled);
  }
  CHECK(read_parallel_style("PrepareModuleOutput()").is_unmodelled);
}

TEST_CASE("names of a plan fit level by level") {
  CHECK(fits_pattern("layers.*.up", "layers.12.up"));
  CHECK(fits_pattern("layers.?.up", "layers.1.up"));
  CHECK(fits_pattern("*.u*p", "block.up"));
  CHECK_FALSE(fits_pattern("layers.?.up", "layers.12.up"));
  CHECK_FALSE(fits_pattern("layers.*", "layers.1.up"));
  CHECK_FALSE(fits_pattern("*", "block.up"));
  CHECK_FALSE(fits_pattern("block.up.weight", "block.up"));
}

// By hand: [2, 6] in two parts along its columns, each three of them; with two sections, as where
// two projections lie side by side, each of 3 columns, of which 3 parts have one each.
TEST_CASE("a part knows where it lies in the whole") {
  const TensorCut columns{{2, 6}, 1, 2, 1};
  CHECK(columns.part_shape() == Shape{2, 3});
  const std::vector<TensorRun> second = columns.runs_of(1);
  REQUIRE(second.size() == 2);
  CHECK(second[0].in_part == 0);
  CHECK(second[0].in_whole == 3);
  CHECK(second[0].elements == 3);
  CHECK(second[1].in_part == 3);
  CHECK(second[1].in_whole == 9);
  const TensorCut sections{{2, 6}, 1, 3, 2};
  std::vector<int64_t> at;
  for (const TensorRun& run : sections.runs_of(2)) {
    CHECK(run.elements == 1);
    at.push_back(run.in_whole);
  }
  CHECK(at == std::vector<int64_t>{2, 5, 8, 11});
}

TEST_CASE("a feed-forward is cut by columns, then by rows") {
  const Network whole = feed_forward();
  const CutNetwork cut = cut_by_text({{"*.up", "colwise"}, {"*.down", "rowwise"}});
  REQUIRE(cut.why_not.empty());
  const std::vector<ParameterPlace> places = cut.network.parameters();
  REQUIRE(places.size() == 4);
  const Shape shapes[] = {{8, 8}, {8}, {8, 8}, {8}};
  int64_t cut_elements = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    CHECK(cut.network.parameter_name(places[i]) == whole.parameter_name(whole.parameters()[i]));
    CHECK(cut.network.parameter(places[i]).shape == shapes[i]);
    CHECK(cut.network.parameter(places[i]).cut.has_value() == (i != 3));
    cut_elements += cut.network.parameter(places[i]).elements();
  }
  CHECK(cut_elements == 64 + 8 + 64 + 8);
  // Two ranks compute what one did.
  for (const Pass pass : {Pass::forward, Pass::input_gradient, Pass::weight_gradient}) {
    Flops of_whole{};
    Flops of_ranks{};
    for (const Layer& layer : whole.layers) {
      of_whole = of_whole + layer.work[static_cast<size_t>(pass)].flops;
    }
    for (const Layer& layer : cut.network.layers) {
      of_ranks = of_ranks + layer.work[static_cast<size_t>(pass)].flops * 2;
    }
    CHECK(of_whole == of_ranks);
  }
}

TEST_CASE("what cannot be cut names the module and a remedy") {
  const std::vector<std::pair<std::vector<std::pair<std::string, std::string>>, std::string>>
      refused{{{{"block.up", "colwise"}}, "block.down"},
              {{{"head", "colwise"}}, "head"},
              {{{"block.up", "sequence"}}, "block.up"},
              {{{"block.down", "rowwise"}}, "block.down"},
              {{{"block.up", "colwise"}, {"block.*", "rowwise"}}, "block.*"},
              {{{"block", "colwise"}}, "block"}};
  for (const auto& [plan, where] : refused) {
    const CutNetwork cut = cut_by_text(plan);
    INFO(where << ": " << cut.where << " " << cut.why_not);
    CHECK(cut.where == where);
    CHECK_FALSE(cut.why_not.empty());
    CHECK_FALSE(cut.remedy.empty());
  }
  const CutNetwork odd = cut_by_text({{"*.up", "colwise"}, {"*.down", "rowwise"}}, 3);
  CHECK(odd.where == "block.up");
  CHECK_FALSE(odd.is_unmodelled);
  // In torch ranks may have unequal parts of an output that is gathered.
  const CutNetwork gathered =
      cut_by_text({{"*.down", "ColwiseParallel(output_layouts=Replicate())"}}, 3);
  CHECK(gathered.where == "block.down");
  CHECK(gathered.is_unmodelled);
}

}  // namespace tensor_parallel_test
