// Networks from the keys of Hugging Face's config.json.
#include "model/network/config_networks.hpp"

#include <catch2/catch.hpp>

#include "model/network/presets.hpp"

using namespace lockstep;

namespace config_networks_test {

namespace {

NamedArgument key(std::string name, int64_t value) { return {std::move(name), value}; }
NamedArgument key(std::string name, const char* value) {
  return {std::move(name), std::string(value)};
}

std::vector<NamedArgument> llama_keys() {
  return {key("model_type", "llama"),      key("hidden_size", 4096),
          key("intermediate_size", 14336), key("num_hidden_layers", 32),
          key("num_attention_heads", 32),  key("num_key_value_heads", 8),
          key("vocab_size", 128256),       key("max_position_embeddings", 8192),
          {"rope_theta", 500000.0},        {"rms_norm_eps", 1e-5},
          key("torch_dtype", "bfloat16"),  {"tie_word_embeddings", false}};
}

std::vector<NamedArgument> without_key(std::vector<NamedArgument> keys, std::string_view name) {
  std::erase_if(keys, [&](const NamedArgument& each) { return each.name == name; });
  return keys;
}

std::vector<NamedArgument> with_key(std::vector<NamedArgument> keys, NamedArgument changed) {
  keys = without_key(std::move(keys), changed.name);
  keys.push_back(std::move(changed));
  return keys;
}

Network configured(const std::vector<NamedArgument>& keys, const ConfiguredSize& size = {}) {
  auto described = describe_config(keys, size);
  if (const auto* error = std::get_if<NetworkError>(&described)) {
    FAIL(error->message);
  }
  BuildResult result = build_network(std::get<ConfiguredNetwork>(described).description);
  REQUIRE(result.ok());
  return std::move(result.network);
}

NetworkError refused(const std::vector<NamedArgument>& keys, const ConfiguredSize& size = {}) {
  const auto described = describe_config(keys, size);
  REQUIRE(std::holds_alternative<NetworkError>(described));
  return std::get<NetworkError>(described);
}

}  // namespace

TEST_CASE("a configuration of Llama 3 8B has the checkpoint's parameters and the preset's cost") {
  const Network llama = configured(llama_keys());
  CHECK(llama.parameter_elements() == 8'030'261'248);
  CHECK(llama.input == Shape{8192});
  const auto preset = std::get<NetworkDescription>(describe_preset("llama3-8b"));
  CHECK(llama.forward_flops() == build_network(preset).network.forward_flops());
  CHECK(configured(llama_keys(), {.seq_len = 128}).input == Shape{128});
}

TEST_CASE("a tied head, biases and a width of heads are read from a configuration") {
  const int64_t head = int64_t{128256} * 4096;
  CHECK(configured(with_key(llama_keys(), {"tie_word_embeddings", true})).parameter_elements() ==
        8'030'261'248 - head);
  CHECK(configured(with_key(llama_keys(), {"attention_bias", true})).parameter_elements() ==
        8'030'261'248 + 32 * (4096 + 2 * 1024 + 4096));
  CHECK(configured(with_key(llama_keys(), {"mlp_bias", true})).parameter_elements() ==
        8'030'261'248 + 32 * (2 * 14336 + 4096));
  // Heads of 64 instead of 128 halve the attention.
  CHECK(configured(with_key(llama_keys(), key("head_dim", 64))).parameter_elements() ==
        8'030'261'248 - int64_t{32} * 4096 * (2 * 4096 + 2 * 1024) / 2);
}

TEST_CASE("configurations of Qwen3, Gemma and T5 have the parameters of their checkpoints") {
  std::vector<NamedArgument> qwen = {
      key("model_type", "qwen3"),     key("hidden_size", 1024),
      key("intermediate_size", 3072), key("num_hidden_layers", 28),
      key("num_attention_heads", 16), key("num_key_value_heads", 8),
      key("head_dim", 128),           key("vocab_size", 151936),
      {"tie_word_embeddings", true},  key("max_position_embeddings", 40960),
      {"use_sliding_window", false},  {"rope_theta", 1e6}};
  CHECK(configured(qwen, {.seq_len = 64}).parameter_elements() == 596'049'920);
  std::vector<NamedArgument> gemma = {key("model_type", "gemma"),
                                      key("hidden_size", 2048),
                                      key("intermediate_size", 16384),
                                      key("num_hidden_layers", 18),
                                      key("num_attention_heads", 8),
                                      key("num_key_value_heads", 1),
                                      key("head_dim", 256),
                                      key("vocab_size", 256000),
                                      key("hidden_act", "gelu"),
                                      key("max_position_embeddings", 8192)};
  CHECK(configured(gemma, {.seq_len = 64}).parameter_elements() == 2'506'172'416);
  CHECK(refused(with_key(gemma, key("hidden_act", "relu"))).is_unmodelled);
  std::vector<NamedArgument> t5 = {
      key("model_type", "t5"), key("d_model", 512), key("d_kv", 64),         key("d_ff", 2048),
      key("num_layers", 6),    key("num_heads", 8), key("vocab_size", 32128)};
  const Network small = configured(t5, {.seq_len = 64, .target_len = 16});
  CHECK(small.parameter_elements() == 60'506'624);
  CHECK(small.input == Shape{80});
  CHECK(small.layers.back().output == Shape{16, 32128});
  // T5 1.1: a gate, and a head of its own: 3 d f in place of 2 d f in each of 8 + 8 blocks.
  std::vector<NamedArgument> gated = with_key(t5, key("feed_forward_proj", "gated-gelu"));
  gated = with_key(with_key(gated, key("d_ff", 1024)), {"tie_word_embeddings", false});
  gated = with_key(with_key(gated, key("num_heads", 6)), key("num_layers", 8));
  // google/t5-v1_1-small: the number of parameters that its file states.
  CHECK(configured(gated, {.seq_len = 64}).parameter_elements() == 76'961'152);
  CHECK(refused(llama_keys(), {.target_len = 16}).message.find("target_len") != std::string::npos);
}

TEST_CASE("a configuration of Mistral has its window, and none where it is null") {
  std::vector<NamedArgument> keys = with_key(llama_keys(), key("model_type", "mistral"));
  const Network all = configured(keys, {.seq_len = 4096});
  const Network windowed =
      configured(with_key(keys, key("sliding_window", 1024)), {.seq_len = 4096});
  CHECK((all.forward_flops() - windowed.forward_flops()) ==
        Flops(int64_t{32} * 4 * 4096 * (4096 - 1024) * 4096));
}

TEST_CASE("a configuration of Mixtral has its experts, and their loss where it is returned") {
  // config.json of mistralai/Mixtral-8x7B-v0.1.
  const std::vector<NamedArgument> keys = {
      key("model_type", "mixtral"),    key("hidden_size", 4096),
      key("intermediate_size", 14336), key("num_hidden_layers", 32),
      key("num_attention_heads", 32),  key("num_key_value_heads", 8),
      key("vocab_size", 32000),        key("max_position_embeddings", 32768),
      key("num_local_experts", 8),     key("num_experts_per_tok", 2),
      {"router_aux_loss_coef", 0.02},  {"output_router_logits", false},
      {"rope_theta", 1000000.0},       {"rms_norm_eps", 1e-5}};
  const auto mixture_of = [](const Network& network) {
    return std::get<MixtureArguments>(network.layers[7].arguments);
  };
  const Network mixtral = configured(keys);
  CHECK(mixtral.parameter_elements() == 46'702'792'704);
  CHECK(mixture_of(mixtral).num_experts == 8);
  CHECK(mixture_of(mixtral).aux_loss_coef == 0);
  CHECK(mixture_of(configured(with_key(keys, {"output_router_logits", true}))).aux_loss_coef ==
        0.02);
  CHECK(refused(with_key(keys, key("num_experts_per_tok", 9))).message ==
        "`num_experts_per_tok` 9 is above `num_local_experts` 8");
  CHECK(refused(with_key(keys, {"router_jitter_noise", 0.1})).is_unmodelled);
}

TEST_CASE("a configuration of Qwen2 has biases before its attention alone, and no window") {
  // config.json of Qwen/Qwen2.5-7B, whose window is switched off.
  const std::vector<NamedArgument> keys = {
      key("model_type", "qwen2"),      key("hidden_size", 3584),
      key("intermediate_size", 18944), key("num_hidden_layers", 28),
      key("num_attention_heads", 28),  key("num_key_value_heads", 4),
      key("vocab_size", 152064),       key("max_position_embeddings", 131072),
      key("sliding_window", 131072),   {"use_sliding_window", false},
      {"rope_theta", 1000000.0},       {"rms_norm_eps", 1e-6}};
  const Network qwen = configured(keys, {.seq_len = 64});
  CHECK(qwen.parameter_elements() == 7'615'616'512);
  CHECK(qwen.parameter_elements() -
            configured(with_key(keys, key("model_type", "llama")), {.seq_len = 64})
                .parameter_elements() ==
        28 * (3584 + 2 * 512));
  CHECK(refused(with_key(keys, {"use_sliding_window", true})).is_unmodelled);
}

TEST_CASE("a configuration of Phi-3 has the published parameters") {
  // config.json of microsoft/Phi-3-mini-4k-instruct.
  const std::vector<NamedArgument> keys = {
      key("model_type", "phi3"),      key("hidden_size", 3072),
      key("intermediate_size", 8192), key("num_hidden_layers", 32),
      key("num_attention_heads", 32), key("num_key_value_heads", 32),
      key("vocab_size", 32064),       key("max_position_embeddings", 4096),
      key("sliding_window", 2047),    {"rms_norm_eps", 1e-5}};
  const Network phi = configured(keys);
  CHECK(phi.parameter_elements() == 3'821'079'552);
  // Of 4096 positions each sees 2047, in scores and weighted sums: 4 s w d of each layer.
  const Network all = configured(without_key(keys, "sliding_window"));
  CHECK((all.forward_flops() - phi.forward_flops()) ==
        Flops(int64_t{32} * 4 * 4096 * (4096 - 2047) * 3072));
  CHECK(refused(with_key(keys, {"partial_rotary_factor", 0.75})).is_unmodelled);
}

TEST_CASE("configurations of OPT and RoBERTa have the published parameters") {
  const std::vector<NamedArgument> opt = {
      key("model_type", "opt"),        key("hidden_size", 768),    key("num_hidden_layers", 12),
      key("num_attention_heads", 12),  key("ffn_dim", 3072),       key("vocab_size", 50272),
      key("word_embed_proj_dim", 768), {"attention_dropout", 0.0}, {"dropout", 0.1}};
  CHECK(configured(opt).parameter_elements() == 125'239'296);
  CHECK(configured(opt).input == Shape{2048});
  // OPT-350M projects its embeddings and has its norms behind.
  CHECK(refused(with_key(opt, key("word_embed_proj_dim", 512))).is_unmodelled);
  CHECK(refused(with_key(opt, {"do_layer_norm_before", false})).is_unmodelled);
  const std::vector<NamedArgument> roberta = {key("model_type", "roberta"),
                                              key("hidden_size", 768),
                                              key("num_hidden_layers", 12),
                                              key("num_attention_heads", 12),
                                              key("intermediate_size", 3072),
                                              key("vocab_size", 50265),
                                              key("max_position_embeddings", 514),
                                              key("type_vocab_size", 1),
                                              key("pad_token_id", 1),
                                              {"layer_norm_eps", 1e-5}};
  CHECK(configured(roberta).parameter_elements() == 124'645'632);
  CHECK(configured(roberta).input == Shape{512});
  CHECK(refused(with_key(roberta, key("max_position_embeddings", 2))).message ==
        "`max_position_embeddings` is 2");
}

TEST_CASE("a configuration of BERT has the published parameters") {
  const std::vector<NamedArgument> keys = {
      key("model_type", "bert"),           key("hidden_size", 768),
      key("num_hidden_layers", 12),        key("num_attention_heads", 12),
      key("intermediate_size", 3072),      key("vocab_size", 30522),
      key("max_position_embeddings", 512), key("type_vocab_size", 2)};
  CHECK(configured(keys).parameter_elements() == 109'482'240);
  CHECK(configured(keys, {.seq_len = 128}).input == Shape{128});
  CHECK(refused(with_key(keys, key("hidden_act", "relu"))).is_unmodelled);
  CHECK(refused(with_key(keys, {"attention_probs_dropout_prob", 0.0})).is_unmodelled);
}

TEST_CASE("configurations of GPT-2 and ViT have the published parameters") {
  const std::vector<NamedArgument> gpt = {key("model_type", "gpt2"), key("n_embd", 768),
                                          key("n_layer", 12),        key("n_head", 12),
                                          key("vocab_size", 50257),  key("n_positions", 1024)};
  CHECK(configured(gpt).parameter_elements() == 124'439'808);
  CHECK(refused(with_key(gpt, {"attn_pdrop", 0.0})).is_unmodelled);
  CHECK(configured(with_key(gpt, {"attn_pdrop", 0.0}), {.dropout = 0.0}).parameter_elements() ==
        124'439'808);
  // google/vit-base-patch16-224: 1000 labels.
  const std::vector<NamedArgument> vit = {
      key("model_type", "vit"),       key("hidden_size", 768),        key("num_hidden_layers", 12),
      key("num_attention_heads", 12), key("intermediate_size", 3072), key("image_size", 224),
      key("patch_size", 16),          key("id2label", 1000)};
  CHECK(configured(vit).parameter_elements() == 86'567'656);
  CHECK(configured(vit, {.num_classes = 10}).parameter_elements() == 86'567'656 - 990 * 769);
  CHECK(refused(vit, {.seq_len = 8}).message == "a model of model_type `vit` has no seq_len");
}

TEST_CASE("a configuration that cannot be is refused with its key") {
  CHECK(refused({}).message == "config.json has no `model_type`");
  CHECK(refused({key("model_type", "lama")}).message == "there is no model_type `lama`");
  const NetworkError bert = refused({key("model_type", "gpt_neox")});
  CHECK(bert.message == "the model_type `gpt_neox` is not modelled yet");
  CHECK(bert.is_unmodelled);
  CHECK(refused(without_key(llama_keys(), "hidden_size")).message ==
        "config.json needs `hidden_size`");
  CHECK(refused(with_key(llama_keys(), key("num_key_value_heads", 5))).message ==
        "`num_key_value_heads` 5 does not divide `num_attention_heads` 32");
  CHECK(refused(with_key(llama_keys(), key("num_attention_heads", 24))).message ==
        "`num_attention_heads` 24 does not divide `hidden_size` 4096");
}

TEST_CASE("sizes of a configuration that no network has are refused") {
  CHECK(refused(with_key(llama_keys(), key("num_hidden_layers", int64_t{0}))).message ==
        "`num_hidden_layers` is 0");
  CHECK(refused(with_key(llama_keys(), key("num_hidden_layers", 1'000'000))).message ==
        "`num_hidden_layers` is 1000000");
  CHECK(refused(with_key(llama_keys(), key("num_attention_heads", int64_t{0}))).message ==
        "`num_attention_heads` is 0");
  CHECK(refused(with_key(llama_keys(), key("hidden_act", "gelu"))).is_unmodelled);
  const auto scaled = std::get<ConfiguredNetwork>(
      describe_config(with_key(llama_keys(), key("rope_scaling", 4)), {}));
  CHECK(scaled.notes.size() == 1);
}

}  // namespace config_networks_test
