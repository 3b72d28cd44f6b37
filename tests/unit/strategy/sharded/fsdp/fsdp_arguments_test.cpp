// What FSDPStrategy takes, what it refuses, and what is not modelled.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "model/strategy/registry.hpp"
#include "model/strategy/sharded/fsdp/fsdp.hpp"
#include "model/strategy/sharded/fsdp/fsdp2.hpp"
#include "tests/unit/strategy/simulated.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace fsdp_arguments_test {

namespace {

StrategyArguments with(const std::string& name, const StrategyArguments::Value& value) {
  StrategyArguments arguments;
  arguments.set(name, value);
  return arguments;
}

void make(const StrategyArguments& arguments) {
  const Network network = small_network();
  TrainingPlan plan;
  plan.network = &network;
  fully_sharded_data_parallel().make(plan, arguments);
}

}  // namespace

TEST_CASE("a wrong value or name of FSDPStrategy is refused") {
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"sharding_strategy", "FULL"},
                                                        {"backward_prefetch", "PRE"},
                                                        {"state_dict_type", "local"},
                                                        {"mixed_precision.param_dtype", "int8"},
                                                        {"mixed_precision.param", "bf16"},
                                                        {"auto_wrap_policy", "Conv2d"},
                                                        {"auto_wrap_policy.by_size", "1"}}) {
    INFO(name << ": " << value);
    CHECK_THROWS_AS(make(with(name, value)), std::invalid_argument);
  }
  CHECK_THROWS_AS(
      make(with("auto_wrap_policy.size_based_auto_wrap_policy.min_num_params", int64_t{0})),
      std::invalid_argument);
}

TEST_CASE("what FSDPStrategy has and is not modelled is refused as such") {
  CHECK_THROWS_AS(make(with("mixed_precision.keep_low_precision_grads", true)), UnmodelledArgument);
  CHECK_THROWS_AS(
      make(with("activation_checkpointing_policy", std::string("size_based_auto_wrap_policy"))),
      UnmodelledArgument);
}

TEST_CASE("null is a value of backward_prefetch and the default of others") {
  CHECK_NOTHROW(make(with("backward_prefetch", std::monostate())));
  CHECK_NOTHROW(make(with("auto_wrap_policy", std::monostate())));
  CHECK_NOTHROW(make(with("forward_prefetch", true)));
  CHECK_NOTHROW(make(with("state_dict_type", std::string("sharded"))));
  CHECK_NOTHROW(make(with("auto_wrap_policy", std::vector<std::string>{"Linear"})));
}

TEST_CASE("classes whose forwards run again are those of either argument, and not of both") {
  using Classes = std::vector<std::string>;
  const auto classes_of = fully_sharded_data_parallel().checkpointed_classes;
  const Classes linear{"Linear"};
  CHECK(classes_of({}).empty());
  CHECK(classes_of(with("activation_checkpointing_policy", linear)) == linear);
  CHECK(classes_of(with("activation_checkpointing", std::string("Linear"))) == linear);
  CHECK(classes_of(with("activation_checkpointing_policy.ModuleWrapPolicy.module_classes",
                        linear)) == linear);
  CHECK(classes_of(with("activation_checkpointing", true)).empty());

  CHECK_NOTHROW(make(with("activation_checkpointing", linear)));
  CHECK_THROWS_AS(make(with("activation_checkpointing", true)), std::invalid_argument);
  CHECK_THROWS_AS(make(with("activation_checkpointing_policy", Classes{"Conv2d"})),
                  std::invalid_argument);
  StrategyArguments both = with("activation_checkpointing", linear);
  both.set("activation_checkpointing_policy", linear);
  CHECK_THROWS_AS(make(both), std::invalid_argument);
}

// torch/distributed/fsdp/api.py: the defaults of MixedPrecision.
TEST_CASE(
    "what a MixedPrecision says that is its default, or of buffers that do not exist, is taken") {
  CHECK_NOTHROW(make(with("mixed_precision.keep_low_precision_grads", false)));
  CHECK_NOTHROW(make(with("mixed_precision.cast_forward_inputs", false)));
  CHECK_NOTHROW(make(with("mixed_precision.cast_root_forward_inputs", true)));
  CHECK_NOTHROW(make(with("mixed_precision.cast_root_forward_inputs", false)));
  CHECK_THROWS_AS(make(with("mixed_precision.keep_low_precision_grads", true)), UnmodelledArgument);
  CHECK_NOTHROW(make(with("mixed_precision.buffer_dtype", std::string("bf16"))));
  CHECK_THROWS_AS(make(with("mixed_precision.buffer_dtype", std::string("float8"))),
                  ArgumentProblem);
  NetworkDescription description;
  description.name = "normalised";
  description.input = {4};
  description.layers = {linear(4, 4), {.kind = "BatchNorm1d", .arguments = {{"", int64_t{4}}}}};
  description.loss = {.kind = "MSELoss"};
  const BuildResult built = build_network(description);
  REQUIRE(built.ok());
  TrainingPlan plan;
  plan.network = &built.network;
  const auto of_type = [&](const char* type) {
    return fully_sharded_data_parallel().make(
        plan, with("mixed_precision.buffer_dtype", std::string(type)));
  };
  const auto without = [&](const char* class_name) {
    return fully_sharded_data_parallel().make(
        plan,
        with("mixed_precision._module_classes_to_ignore", std::vector<std::string>{class_name}));
  };
  CHECK_NOTHROW(without("torch.nn.modules.batchnorm._BatchNorm"));
  CHECK_NOTHROW(without("BatchNorm1d"));
  CHECK_NOTHROW(without("BatchNorm2d"));  // none of it
  CHECK_THROWS_AS(without("Linear"), UnmodelledArgument);
  CHECK_THROWS_AS(of_type("bf16"), UnmodelledArgument);
  CHECK_NOTHROW(of_type("fp32"));
  // A policy leaves batch norms without mixed precision, and so their buffers as they are.
  StrategyArguments apart = with("mixed_precision.buffer_dtype", std::string("bf16"));
  apart.set("auto_wrap_policy", std::vector<std::string>{"Linear"});
  CHECK_NOTHROW(fully_sharded_data_parallel().make(plan, apart));
}

// _init_process_group_state: a tuple (group that shards, group that replicates).
TEST_CASE("process_group of hybrid sharding is the sizes of its two groups") {
  const auto groups = [](std::vector<std::string> sizes, const char* sharding, int32_t ranks,
                         bool with_mesh = false) {
    StrategyArguments arguments = with("process_group", std::move(sizes));
    arguments.set("sharding_strategy", std::string(sharding));
    if (with_mesh) {
      arguments.set("device_mesh", std::vector<std::string>{"2", "4"});
    }
    const Network network = small_network();
    TrainingPlan plan;
    plan.network = &network;
    plan.world_size = ranks;
    fully_sharded_data_parallel().make(plan, arguments);
  };
  CHECK_NOTHROW(groups({"4", "2"}, "HYBRID_SHARD", 8));
  CHECK_THROWS_AS(groups({"4", "4"}, "HYBRID_SHARD", 8), ArgumentProblem);
  for (const char* size : {"4.5", "4x", "-4", "0", "", "99999999999999999999"}) {
    INFO(size);
    CHECK_THROWS_AS(groups({size, "2"}, "HYBRID_SHARD", 8), ArgumentProblem);
  }
  CHECK_THROWS_AS(groups({"8"}, "_HYBRID_SHARD_ZERO2", 8), RefusedArgument);
  CHECK_THROWS_AS(groups({"4", "2"}, "HYBRID_SHARD", 8, true), RefusedArgument);
  CHECK_NOTHROW(groups({"8"}, "FULL_SHARD", 8));
  CHECK_THROWS_AS(groups({"4", "2"}, "FULL_SHARD", 8), UnmodelledArgument);
  StrategyArguments given = with("process_group", std::vector<std::string>{"4", "2"});
  const ArgumentsOfSize larger = fully_sharded_data_parallel().of_size(given, 16);
  REQUIRE(larger.values.size() == 1);
  CHECK(larger.values[0] == std::pair<std::string, std::string>("process_group", "[4, 4]"));
  CHECK_FALSE(fully_sharded_data_parallel().of_size(given, 6).why_not.empty());
}

TEST_CASE("a device mesh needs a hybrid sharding strategy and as many ranks as the run has") {
  const auto mesh = [](std::vector<std::string> sizes, const char* sharding, int32_t ranks) {
    StrategyArguments arguments = with("device_mesh", std::move(sizes));
    arguments.set("sharding_strategy", std::string(sharding));
    const Network network = small_network();
    TrainingPlan plan;
    plan.network = &network;
    plan.world_size = ranks;
    fully_sharded_data_parallel().make(plan, arguments);
  };
  CHECK_NOTHROW(mesh({"2", "4"}, "HYBRID_SHARD", 8));
  CHECK_THROWS_AS(mesh({"2", "4"}, "HYBRID_SHARD", 4), std::invalid_argument);
  CHECK_THROWS_AS(mesh({"8"}, "HYBRID_SHARD", 8), RefusedArgument);
  CHECK_NOTHROW(mesh({"8"}, "FULL_SHARD", 8));
  CHECK_THROWS_AS(mesh({"4"}, "FULL_SHARD", 8), std::invalid_argument);
  CHECK_THROWS_AS(mesh({"2", "4"}, "FULL_SHARD", 8), std::invalid_argument);
}

namespace {

std::string said(const StrategyEntry& entry, const StrategyArguments& arguments, int32_t ranks) {
  const Network network = small_network();
  TrainingPlan plan;
  plan.network = &network;
  plan.world_size = ranks;
  try {
    entry.make(plan, arguments);
  } catch (const RefusedArgument& error) {
    return fmt::format("refused, {}: {}", error.argument(), error.what());
  } catch (const ArgumentProblem& error) {
    return fmt::format("{}: {}", error.argument(), error.remedy());
  }
  return "";
}

std::string of_fsdp(const std::string& name, const StrategyArguments::Value& value) {
  return said(fully_sharded_data_parallel(), with(name, value), 4);
}

StrategyArguments fully_shard2(const std::string& name, const StrategyArguments::Value& value) {
  StrategyArguments arguments;
  arguments.set("tensor_parallel_size", int64_t{1});
  arguments.set("data_parallel_size", int64_t{4});
  arguments.set(name, value);
  return arguments;
}

std::string of_fsdp2(const std::string& name, const StrategyArguments::Value& value) {
  return said(model_parallel(), fully_shard2(name, value), 4);
}

}  // namespace

TEST_CASE("hybrid sharding needs a policy or a mesh, and no group of all ranks") {
  for (const char* sharding : {"HYBRID_SHARD", "_HYBRID_SHARD_ZERO2"}) {
    INFO(sharding);
    // _init_sharding_strategy of lightning/fabric/strategies/fsdp.py.
    CHECK_THAT(of_fsdp("sharding_strategy", std::string(sharding)),
               Catch::Matchers::StartsWith("refused, sharding_strategy: RuntimeError: The hybrid "
                                           "sharding strategy requires you to pass at least one"));
    StrategyArguments wrapped = with("sharding_strategy", std::string(sharding));
    wrapped.set("auto_wrap_policy", std::vector<std::string>{"Linear"});
    CHECK(said(fully_sharded_data_parallel(), wrapped, 4) == "");
    StrategyArguments mesh = with("sharding_strategy", std::string(sharding));
    mesh.set("device_mesh", std::vector<std::string>{"2", "2"});
    CHECK(said(fully_sharded_data_parallel(), mesh, 4) == "");
    wrapped.set("auto_wrap_policy", std::monostate());
    CHECK_THAT(said(fully_sharded_data_parallel(), wrapped, 4),
               Catch::Matchers::StartsWith("refused"));
    // strategies/fsdp.py of 2.0.9: process_group=self.process_group.
    mesh.set("default_process_group", true);
    CHECK_THAT(said(fully_sharded_data_parallel(), mesh, 4),
               Catch::Matchers::Contains("Expected process_group to be passed in as either None"));
  }
}

TEST_CASE("values of FSDPStrategy may be written as a script writes them") {
  CHECK(of_fsdp("sharding_strategy", std::string("ShardingStrategy.SHARD_GRAD_OP")) == "");
  CHECK(of_fsdp("backward_prefetch", std::string("BackwardPrefetch.BACKWARD_POST")) == "");
  CHECK(of_fsdp("mixed_precision.MixedPrecision.param_dtype", std::string("torch.bfloat16")) == "");
  CHECK(of_fsdp("cpu_offload.CPUOffload.offload_params", true) == "");
  CHECK(of_fsdp("mixed_precision.MixedPrecision.param_dtype", std::string("int8")) != "");
  CHECK(of_fsdp2("fully_shard.mp_policy.MixedPrecisionPolicy.reduce_dtype",
                 std::string("torch.float32")) == "");
  CHECK(of_fsdp2("fully_shard.offload_policy.CPUOffloadPolicy.pin_memory", true) == "");
  CHECK(of_fsdp2("fully_shard.offload_policy", std::string("OffloadPolicy")) == "");
  CHECK(of_fsdp2("fully_shard.offload_policy", std::string("NoPolicy")) != "");
}

TEST_CASE("what is wrong with an argument names it and the nearest value") {
  CHECK(of_fsdp("sharding_strategy", std::string("FULLSHARD")) ==
        "sharding_strategy: did you mean `FULL_SHARD`?");
  CHECK(of_fsdp("mixed_precision.param_dtype", std::string("bfloat61")) ==
        "mixed_precision.param_dtype: did you mean `bfloat16`?");
  CHECK(of_fsdp("auto_wrap_policy", std::vector<std::string>{"Linaer"}) ==
        "auto_wrap_policy: did you mean `Linear`?");
  CHECK(of_fsdp("forward_prefetch", int64_t{3}) == "forward_prefetch: ");
  // Policies that there are, with the usual spellings first, and nothing that is none.
  CHECK(of_fsdp("auto_wrap_policy.always_wrap", int64_t{1}) ==
        "auto_wrap_policy.always_wrap: write classes, as in [Linear], or blocks; auto_wrap_policy "
        "takes ModuleWrapPolicy, transformer_auto_wrap_policy, size_based_auto_wrap_policy");
  CHECK(of_fsdp("auto_wrap_policy.ModuleWrapPolicy.module_clases", std::string("Linear")) ==
        "auto_wrap_policy.ModuleWrapPolicy.module_clases: did you mean `module_classes`?");
  CHECK(of_fsdp("mixed_precision.foo", int64_t{1}) ==
        "mixed_precision.foo: mixed_precision takes param_dtype, reduce_dtype, buffer_dtype, "
        "cast_forward_inputs, cast_root_forward_inputs, _module_classes_to_ignore");
  CHECK(of_fsdp2("fully_shard.module", std::string("Linear")) ==
        "fully_shard.module: did you mean `modules`?");
}

TEST_CASE("Lightning reads the sharding strategy in any case") {
  CHECK(of_fsdp("sharding_strategy", std::string("shard_grad_op")).empty());
}

TEST_CASE("sizes that do not make up the ranks are refused at set-up, as by Lightning and torch") {
  CHECK(of_fsdp2("data_parallel_size", int64_t{3}) ==
        "refused, data_parallel_size: RuntimeError: data_parallel_size=3 and "
        "tensor_parallel_size=1 multiplied should equal the world size, 4");
  CHECK(of_fsdp2("fully_shard.mesh", std::vector<std::string>{"3", "2"})
            .find("refused, fully_shard.mesh: RuntimeError: Mesh should not be bigger") == 0);
  CHECK(of_fsdp2("fully_shard.mesh", std::vector<std::string>{"2", "2"}).empty());
  // The mesh of one dimension that fully_shard makes itself.
  CHECK(of_fsdp2("fully_shard.mesh", std::vector<std::string>{"4"}).empty());
  CHECK(of_fsdp2("fully_shard.mesh", std::vector<std::string>{"3"})
            .find("fully_shard.mesh: write [4], or [replicas, shards]") == 0);
  CHECK(of_fsdp2("fully_shard.reshard_after_forward", int64_t{3})
            .find("refused, fully_shard.reshard_after_forward: ValueError") == 0);
  for (const int64_t factor : {1, 2, 4}) {
    CHECK(of_fsdp2("fully_shard.reshard_after_forward", factor).empty());
  }
  StrategyArguments both = with("activation_checkpointing", std::vector<std::string>{"Linear"});
  both.set("activation_checkpointing_policy", std::vector<std::string>{"Linear"});
  CHECK(said(fully_sharded_data_parallel(), both, 4).find("refused, activation_checkpointing:") ==
        0);
}

TEST_CASE("a policy that wraps nothing has no effect, and is reported") {
  const Network network = small_network();  // nothing in it repeats
  TrainingPlan plan;
  plan.network = &network;
  const auto of = [&plan](const StrategyEntry& entry, const StrategyArguments& arguments) {
    return entry.without_effect(plan, arguments);
  };
  const StrategyEntry fsdp = fully_sharded_data_parallel();
  const std::string policy = "auto_wrap_policy";
  const std::string size = policy + ".size_based_auto_wrap_policy.min_num_params";
  for (const auto& arguments :
       {with(policy, std::string("blocks")), with(size, int64_t{1'000'000'000}),
        with(policy, std::vector<std::string>())}) {
    REQUIRE(of(fsdp, arguments).size() == 1);
    CHECK(of(fsdp, arguments).front().first == policy);
  }
  CHECK(of(fsdp, with(policy, std::vector<std::string>{"Linear"})).empty());
  CHECK(of(fsdp, with(policy, std::monostate())).empty());
  CHECK(of(fsdp, {}).empty());
  CHECK(of(model_parallel(), with("fully_shard.modules", std::string("blocks"))).size() == 1);
  CHECK(of(model_parallel(), with("fully_shard.modules", std::string("Linear"))).empty());
}

// c10/cuda/CUDACachingAllocator.cpp counts a block as allocated until the host frees it, and keeps
// it until every stream that record_stream named has come so far. 4 x 6 + 6 + 6 x 2 + 2 elements.
TEST_CASE("what limit_all_gathers: false reserves and memory does not count is said") {
  const Network network = small_network();
  TrainingPlan plan;
  plan.network = &network;
  plan.world_size = 2;
  const StrategyEntry fsdp = fully_sharded_data_parallel();
  const auto said_of = [&](const StrategyArguments& arguments) {
    const auto found = fsdp.without_effect(plan, arguments);
    return found.empty() ? std::string() : found.front().first + ": " + found.front().second;
  };
  const StrategyArguments unlimited = with("limit_all_gathers", false);
  CHECK_THAT(said_of(unlimited), Catch::Matchers::StartsWith("limit_all_gathers: ") &&
                                     Catch::Matchers::Contains("up to 176 B for each pass"));
  StrategyArguments narrow = unlimited;
  narrow.set("mixed_precision.param_dtype", std::string("bf16"));
  CHECK_THAT(said_of(narrow), Catch::Matchers::Contains("up to 88 B for each pass"));
  CHECK(said_of({}).empty());
  StrategyArguments whole = unlimited;
  whole.set("sharding_strategy", std::string("NO_SHARD"));
  CHECK(said_of(whole).empty());
  plan.is_on_gpu = false;
  CHECK(said_of(unlimited).empty());
}

TEST_CASE("what counts the ranks follows them, where the shards divide their number") {
  const auto of = [](const StrategyArguments& arguments, int64_t ranks) {
    return model_parallel().of_size(arguments, ranks);
  };
  using Changed = std::vector<std::pair<std::string, std::string>>;
  const StrategyArguments mesh =
      fully_shard2("fully_shard.mesh", std::vector<std::string>{"1", "4"});
  CHECK(of(fully_shard2("save_distributed_checkpoint", true), 8).values ==
        Changed{{"data_parallel_size", "8"}});
  CHECK(of(mesh, 8).values == Changed{{"data_parallel_size", "8"}, {"fully_shard.mesh", "[2, 4]"}});
  CHECK(of(mesh, 8).why_not.empty());
  CHECK_FALSE(of(mesh, 2).why_not.empty());
  CHECK(of(fully_shard2("fully_shard.mesh", std::vector<std::string>{"4"}), 8).values ==
        Changed{{"data_parallel_size", "8"}, {"fully_shard.mesh", "[8]"}});
}

TEST_CASE("prefetching has no effect where no unit is gathered") {
  const Network network = small_network();
  TrainingPlan plan;
  plan.network = &network;
  plan.world_size = 2;
  const StrategyEntry fsdp = fully_sharded_data_parallel();
  StrategyArguments arguments = with("forward_prefetch", true);
  CHECK(fsdp.without_effect(plan, arguments).empty());
  arguments.set("sharding_strategy", std::string("NO_SHARD"));
  const auto found = fsdp.without_effect(plan, arguments);
  REQUIRE(found.size() == 1);
  CHECK(found[0].first == "forward_prefetch");
}

}  // namespace fsdp_arguments_test
