#include "model/network/presets.hpp"

#include <catch2/catch.hpp>

#include "model/network/mixture.hpp"

using namespace lockstep;

namespace presets_test {

namespace {

Network preset(std::string_view name, const std::vector<NamedArgument>& arguments = {}) {
  const auto description = describe_preset(name, arguments);
  REQUIRE(std::holds_alternative<NetworkDescription>(description));
  BuildResult result = build_network(std::get<NetworkDescription>(description));
  for (const NetworkError& error : result.errors) {
    FAIL(error.path << ": " << error.message);
  }
  return result.network;
}

}  // namespace

TEST_CASE("preset networks have the published number of parameters") {
  CHECK(preset("mlp").parameter_elements() == 2242);
  CHECK(preset("resnet18").parameter_elements() == 11'689'512);
  CHECK(preset("resnet50").parameter_elements() == 25'557'032);
  CHECK(preset("gpt2").parameter_elements() == 124'439'808);
  CHECK(preset("gpt2-medium").parameter_elements() == 354'823'168);
  CHECK(preset("gpt2-large").parameter_elements() == 774'030'080);
  CHECK(preset("gpt2-xl").parameter_elements() == 1'557'611'200);
  // BERT of width d with L layers: (30522 + 512 + 2) d of embeddings and 2 d of their norm; each
  // layer 4 (d^2 + d) of attention, (4 d^2 + 4 d) + (4 d^2 + d) of the MLP and 4 d of two norms, so
  // 12 d^2 + 13 d; d^2 + d of the pooler. For d = 768, L = 12: 23,837,184 + 12 x 7,087,872 +
  // 590,592.
  CHECK(preset("bert-base").parameter_elements() == 109'482'240);
  CHECK(preset("bert-large").parameter_elements() == 335'141'888);
  // GPT-3: 12 L d^2 + 13 L d, and (50257 + 2048 + 2) d of embeddings and the last norm.
  CHECK(preset("gpt3-6.7b").parameter_elements() == 6658404352);
  CHECK(preset("gpt3-13b").parameter_elements() == 12853386240);
  CHECK(preset("gpt3-175b").parameter_elements() == 174604259328);
}

TEST_CASE("image presets have torchvision's number of parameters") {
  // torchvision.models' weights metadata, `num_params`.
  CHECK(preset("resnet34").parameter_elements() == 21'797'672);
  CHECK(preset("resnet101").parameter_elements() == 44'549'160);
  CHECK(preset("resnet152").parameter_elements() == 60'192'808);
  CHECK(preset("wide-resnet50-2").parameter_elements() == 68'883'240);
  CHECK(preset("wide-resnet101-2").parameter_elements() == 126'886'696);
  CHECK(preset("resnext50-32x4d").parameter_elements() == 25'028'904);
  CHECK(preset("resnext101-32x8d").parameter_elements() == 88'791'336);
  CHECK(preset("resnext101-64x4d").parameter_elements() == 83'455'272);
  CHECK(preset("vgg11").parameter_elements() == 132'863'336);
  CHECK(preset("vgg13").parameter_elements() == 133'047'848);
  CHECK(preset("vgg16").parameter_elements() == 138'357'544);
  CHECK(preset("vgg19").parameter_elements() == 143'667'240);
  CHECK(preset("densenet121").parameter_elements() == 7'978'856);
  CHECK(preset("densenet161").parameter_elements() == 28'681'000);
  CHECK(preset("densenet169").parameter_elements() == 14'149'480);
  CHECK(preset("densenet201").parameter_elements() == 20'013'928);
  CHECK(preset("vit-b-16").parameter_elements() == 86'567'656);
  CHECK(preset("vit-l-16").parameter_elements() == 304'326'632);
  CHECK(preset("vit-h-14").parameter_elements() == 632'045'800);
  // milesial/Pytorch-UNet with 3 channels and 2 classes, transposed convolutions: a double
  // convolution a -> b has 9 a b + 9 b b + 4 b, an enlargement a -> b 4 a b + b.
  const auto twice = [](int64_t a, int64_t b) { return 9 * a * b + 9 * b * b + 4 * b; };
  const auto up = [](int64_t a, int64_t b) { return 4 * a * b + b; };
  const int64_t unet = twice(3, 64) + twice(64, 128) + twice(128, 256) + twice(256, 512) +
                       twice(512, 1024) + up(1024, 512) + twice(1024, 512) + up(512, 256) +
                       twice(512, 256) + up(256, 128) + twice(256, 128) + up(128, 64) +
                       twice(128, 64) + 2 * 64 + 2;
  CHECK(unet == 31'037'698);
  CHECK(preset("unet", {{"num_classes", int64_t{2}}}).parameter_elements() == unet);
}

TEST_CASE("Llama and Mistral have the published number of parameters") {
  // V e each for embedding and head, e for the last norm; each of L layers has e (2 h + 2 k) d of
  // attention, 3 e f of SwiGLU and 2 e of norms. Llama 2 7B: 2 * 32000 * 4096 + 4096 +
  // 32 (4 * 4096^2 + 3 * 4096 * 11008 + 2 * 4096) = 262,144,000 + 4,096 + 6,476,267,520.
  CHECK(preset("llama2-7b").parameter_elements() == 6'738'415'616);
  CHECK(preset("llama2-13b").parameter_elements() == 13'015'864'320);
  CHECK(preset("llama2-70b").parameter_elements() == 68'976'648'192);
  CHECK(preset("llama3-8b").parameter_elements() == 8'030'261'248);
  CHECK(preset("llama3-70b").parameter_elements() == 70'553'706'496);
  // 126 (16384 (2 * 16384 + 2 * 1024) + 3 * 16384 * 53248 + 2 * 16384) + 2 * 128256 * 16384 + 16384
  // = 126 * 3,187,703,808 + 4,202,692,608 + 16,384.
  CHECK(preset("llama3-405b").parameter_elements() ==
        126 * int64_t{3'187'703'808} + 4'202'692'608 + 16'384);
  CHECK(preset("llama3-405b").parameter_elements() == 405'853'388'800);
  CHECK(preset("mistral-7b").parameter_elements() == 7'241'732'096);
}

TEST_CASE("smaller Llamas, Phi-3 and Qwen2.5 have the published number of parameters") {
  // The number of parameters that the checkpoints' files state. By hand, Llama 3.2 1B with a tied
  // head: 128256 * 2048 + 2048 + 16 (2048 (2 * 2048 + 2 * 512) + 3 * 2048 * 8192 + 2 * 2048) =
  // 262,668,288 + 2,048 + 16 * 60,821,504. Qwen2.5 7B has h d + 2 k d biases in each layer:
  // 2 * 152064 * 3584 + 3584 + 28 (3584 (2 * 3584 + 2 * 512) + 4608 + 3 * 3584 * 18944 + 2 * 3584).
  CHECK(preset("llama3.2-1b").parameter_elements() == 1'235'814'400);
  CHECK(preset("llama3.2-3b").parameter_elements() == 3'212'749'824);
  CHECK(preset("tinyllama-1.1b").parameter_elements() == 1'100'048'384);
  CHECK(preset("phi3-mini").parameter_elements() == 3'821'079'552);
  CHECK(preset("qwen2.5-0.5b").parameter_elements() == 494'032'768);
  CHECK(preset("qwen2.5-1.5b").parameter_elements() == 1'543'714'304);
  CHECK(preset("qwen2.5-3b").parameter_elements() == 3'085'938'688);
  CHECK(preset("qwen2.5-7b").parameter_elements() == 7'615'616'512);
  CHECK(preset("qwen2.5-14b").parameter_elements() == 14'770'033'664);
  CHECK(preset("qwen2.5-32b").parameter_elements() == 32'763'876'352);
  CHECK(preset("qwen2.5-72b").parameter_elements() == 72'706'203'648);
}

TEST_CASE("Qwen3 and Gemma have the published number of parameters") {
  // The number of parameters that the checkpoints' files state. By hand, Qwen3 8B: 2 * 151936 *
  // 4096
  // + 4096 + 36 (4096 * 128 (2 * 32 + 2 * 8) + 2 * 128 + 3 * 4096 * 12288 + 2 * 4096). Gemma 2B,
  // with a tied head: 256000 * 2048 + 2048 + 18 (2048 * 256 (2 * 8 + 2) + 3 * 2048 * 16384 + 2 *
  // 2048).
  const auto qwen3 = [](int64_t l, int64_t h, int64_t k, int64_t d, int64_t f, int64_t heads) {
    return heads * 151936 * d + d + l * (d * 128 * (2 * h + 2 * k) + 256 + 3 * d * f + 2 * d);
  };
  CHECK(qwen3(36, 32, 8, 4096, 12288, 2) == 8'190'735'360);
  CHECK(preset("qwen3-0.6b").parameter_elements() == 596'049'920);
  CHECK(preset("qwen3-1.7b").parameter_elements() == qwen3(28, 16, 8, 2048, 6144, 1));
  CHECK(preset("qwen3-4b").parameter_elements() == 4'022'468'096);
  CHECK(preset("qwen3-8b").parameter_elements() == 8'190'735'360);
  CHECK(preset("qwen3-14b").parameter_elements() == 14'768'307'200);
  CHECK(preset("qwen3-32b").parameter_elements() == 32'762'123'264);
  CHECK(preset("gemma-2b").parameter_elements() == 2'506'172'416);
  CHECK(preset("gemma-7b").parameter_elements() == 8'537'680'896);
}

TEST_CASE("OPT and RoBERTa have the published number of parameters") {
  // OPT of width d with L layers: 12 L d^2 + 13 L d, and (50272 + 2048 + 2) d of embeddings and 2 d
  // of the last norm, the head being tied.
  CHECK(preset("opt-125m").parameter_elements() == 125'239'296);
  CHECK(preset("opt-1.3b").parameter_elements() == 1'315'758'080);
  struct Row {
    std::string_view name;
    int64_t l, h;
  };
  for (const Row& row :
       {Row{"opt-2.7b", 32, 2560}, Row{"opt-6.7b", 32, 4096}, Row{"opt-13b", 40, 5120},
        Row{"opt-30b", 48, 7168}, Row{"opt-66b", 64, 9216}, Row{"opt-175b", 96, 12288}}) {
    INFO(row.name);
    CHECK(preset(row.name).parameter_elements() ==
          12 * row.l * row.h * row.h + 13 * row.l * row.h + (50272 + 2048 + 2 + 2) * row.h);
  }
  // RoBERTa: as BERT, with (50265 + 514 + 1) d of embeddings. 514 positions carry 512.
  CHECK(preset("roberta-base").parameter_elements() == 124'645'632);
  CHECK(preset("roberta-large").parameter_elements() == 355'359'744);
  CHECK(preset("roberta-base").input == Shape{512});
}

TEST_CASE("Mixtral has the published number of parameters, and of active ones") {
  // As a Llama, but each layer has E e of the router and E experts of 3 e f. Mixtral 8x7B:
  // 2 * 32000 * 4096 + 4096 + 32 (41,943,040 + 32,768 + 8 * 176,160,768 + 8,192), the total_size of
  // its model.safetensors.index.json over 2 bytes; 8x22B likewise.
  const Network mixtral = preset("mixtral-8x7b");
  CHECK(mixtral.parameter_elements() == 46'702'792'704);
  CHECK(preset("mixtral-8x22b").parameter_elements() == 140'620'634'112);
  // A token passes through 2 of 8 experts: Jiang et al. 2024 say 13 B, and 39 B of the other.
  CHECK(active_parameter_elements(mixtral) == 46'702'792'704 - 32 * int64_t{6} * 176'160'768);
  CHECK(active_parameter_elements(preset("mixtral-8x22b")) == 39'152'031'744);
  CHECK(active_parameter_elements(preset("mistral-7b")) == 7'241'732'096);
  // 25 tensors of the mixture, 4 of attention and 2 norms in each layer.
  CHECK(mixtral.parameters().size() == 32 * (25 + 4 + 2) + 3);
  CHECK(mixtral.parameter_name(mixtral.parameters()[8]) ==
        "model.layers.0.block_sparse_moe.experts.0.w1.weight");
}

TEST_CASE("a Llama has the checkpoint's tensors, and 2 FLOPs a weight and token beside attention") {
  const Network llama = preset("llama2-7b");
  CHECK(llama.parameters().size() == 291);  // of model.safetensors.index.json: 9 * 32 + 3
  CHECK(llama.parameter_name(llama.parameters().front()) == "model.embed_tokens.weight");
  CHECK(llama.parameter_name(llama.parameters()[1]) == "model.layers.0.input_layernorm.weight");
  CHECK(llama.parameter_name(llama.parameters()[2]) == "model.layers.0.self_attn.q_proj.weight");
  CHECK(llama.parameter_name(llama.parameters()[7]) == "model.layers.0.mlp.gate_proj.weight");
  // Kaplan et al. 2020: 2 N for the weights that products read (embedding and norms are none),
  // and 4 L s e of scores and sums for each token, a causal mask not deducted.
  const int64_t s = 4096;
  const int64_t products = 6'738'415'616 - 32000 * 4096 - 65 * 4096;
  CHECK(llama.forward_flops() == Flops(s * (2 * products + 4 * 32 * s * 4096)));
  CHECK(llama.backward_flops() == llama.forward_flops() * 2);
  // Mistral's positions see 4096 others of 8192.
  const int64_t weights = 7'241'732'096 - 32000 * 4096 - 65 * 4096;
  CHECK(preset("mistral-7b").forward_flops() ==
        Flops(2 * s * (2 * weights + 4 * 32 * 4096 * int64_t{4096})));
}

TEST_CASE("Megatron's table has the parameters that its formula and its first column give") {
  // Narayanan et al. 2021, equation 2: 12 l h^2 (1 + 13 / (12 h) + (V + s) / (12 l h)), and the
  // billions in table 1. The formula leaves out the last norm, 2 h.
  struct Row {
    const char* name;
    int64_t l, h;
    double billions;
  };
  for (const Row& row :
       {Row{"megatron-1.7b", 24, 2304, 1.7}, Row{"megatron-3.6b", 30, 3072, 3.6},
        Row{"megatron-7.5b", 36, 4096, 7.5}, Row{"megatron-18.4b", 40, 6144, 18.4},
        Row{"megatron-39.1b", 48, 8192, 39.1}, Row{"megatron-76.1b", 60, 10240, 76.1},
        Row{"megatron-145.6b", 80, 12288, 145.6}, Row{"megatron-310.1b", 96, 16384, 310.1},
        Row{"megatron-529.6b", 105, 20480, 529.6}, Row{"megatron-1t", 128, 25600, 1008.0}}) {
    INFO(row.name);
    const int64_t formula =
        12 * row.l * row.h * row.h + 13 * row.l * row.h + (51200 + 2048) * row.h;
    const Network network = preset(row.name);
    CHECK(network.parameter_elements() == formula + 2 * row.h);
    CHECK(static_cast<double>(formula) * 1e-9 == Approx(row.billions).margin(0.06));
  }
}

TEST_CASE("image presets cost what torchvision publishes") {
  // Its `_ops` metadata, in giga multiply-adds; a multiply-add is 2 here.
  const auto multiply_adds = [](std::string_view name) {
    return static_cast<double>(preset(name).forward_flops().count()) / 2e9;
  };
  CHECK(multiply_adds("resnet34") == Approx(3.664).margin(0.001));
  CHECK(multiply_adds("resnet101") == Approx(7.801).margin(0.001));
  CHECK(multiply_adds("resnet152") == Approx(11.514).margin(0.001));
  CHECK(multiply_adds("wide-resnet50-2") == Approx(11.398).margin(0.001));
  CHECK(multiply_adds("resnext50-32x4d") == Approx(4.230).margin(0.001));
  CHECK(multiply_adds("resnext101-32x8d") == Approx(16.414).margin(0.001));
  CHECK(multiply_adds("vgg11") == Approx(7.609).margin(0.001));
  CHECK(multiply_adds("vgg16") == Approx(15.470).margin(0.001));
  CHECK(multiply_adds("vgg19") == Approx(19.632).margin(0.001));
  CHECK(multiply_adds("densenet121") == Approx(2.834).margin(0.001));
  CHECK(multiply_adds("densenet161") == Approx(7.728).margin(0.001));
  CHECK(multiply_adds("vit-b-16") == Approx(17.564).epsilon(0.001));
  CHECK(multiply_adds("vit-l-16") == Approx(61.555).epsilon(0.001));
  CHECK(multiply_adds("vit-h-14") == Approx(167.295).epsilon(0.001));
  // U-Net by hand: in 2^16 pixels of 256 x 256, each double convolution has 9 a b + 9 b b products
  // a pixel; widths double where pixels are a quarter, so that those of all levels but the first
  // are alike. An enlargement has 4 a b of each pixel that goes in.
  const double down = 9.0 * (64 * 128 + 128 * 128) / 4;
  const double up = 9.0 * (128 * 64 + 64 * 64);
  const double unet =
      65536 * (9.0 * (3 * 64 + 64 * 64) + 4 * down + 4 * up + 4 * (4.0 * 128 * 64) / 4 + 64);
  const auto flops = preset("unet", {{"image_size", int64_t{256}}}).forward_flops().count();
  CHECK(static_cast<double>(flops) / 2 == Approx(unet).epsilon(1e-9));
}

TEST_CASE("preset networks have the published parameter tensors and buffers") {
  const Network resnet = preset("resnet50");
  CHECK(preset("resnet18").parameters().size() == 62);
  CHECK(resnet.parameters().size() == 161);
  CHECK(resnet.parameter_name(resnet.parameters().front()) == "conv1.weight");
  CHECK(resnet.parameter_name(resnet.parameters()[12]) == "layer1.0.downsample.0.weight");
  CHECK(resnet.parameter_name(resnet.parameters().back()) == "fc.bias");
  // 53 batch norms: two fp32 vectors over 26,560 channels in all, and one int64 counter each.
  CHECK(resnet.buffer_bytes() == Bytes(2 * 26'560 * 4 + 53 * 8));
  CHECK(preset("gpt2").parameters().size() == 148);
  CHECK(preset("gpt2").parameter_name({2 + 2, 0}) == "transformer.h.0.ln_1.weight");
}

TEST_CASE("ResNet operations match the published multiply-adds") {
  // torchvision's model pages: 4.089 and 1.814 GFLOPS, where a multiply-add counts one.
  CHECK(static_cast<double>(preset("resnet50").forward_flops().count()) / 2e9 ==
        Approx(4.089).margin(0.0005));
  CHECK(static_cast<double>(preset("resnet18").forward_flops().count()) / 2e9 ==
        Approx(1.814).margin(0.0005));
}

TEST_CASE("GPT-2 operations match Narayanan's formula and the published count") {
  // 24 s h^2 + 4 s^2 h for each of 12 layers, 2 s h V for the head; nanoGPT's sizing notebook
  // publishes the same 291,648,307,200 for 124 M parameters at 1024 tokens.
  const int64_t s = 1024;
  const int64_t h = 768;
  const Network gpt = preset("gpt2");
  CHECK(gpt.forward_flops().count() == 12 * (24 * s * h * h + 4 * s * s * h) + 2 * s * h * 50257);
  CHECK(gpt.forward_flops() == Flops(291'648'307'200));
  CHECK(gpt.backward_flops() == gpt.forward_flops() * 2);
}

TEST_CASE("a tied head has no weight of its own and uses the embedding's") {
  const Network gpt = preset("gpt2");
  const Layer& head = gpt.layers.back();
  CHECK(head.parameters.empty());
  REQUIRE(head.tied_layer == 0);
  CHECK(head.weight_elements == 50257 * 768);
  CHECK(head.work_of(Pass::weight_gradient).runs);
}

TEST_CASE("a transformer layer keeps what Korthikanti et al. count") {
  // 16 bit, no flash attention, with dropout: s b h (34 + 5 a s / h) bytes per layer. The paper
  // leaves out the fp32 statistics of the two layer norms, 8 bytes a position each.
  auto description = std::get<NetworkDescription>(describe_preset("gpt2"));
  description.flash_attention = false;
  const Network network = build_network(description).network;
  const int64_t s = 1024;
  const int64_t h = 768;
  Bytes block;
  for (const Layer& layer : network.layers) {
    if (layer.name.starts_with("transformer.h.5.")) {
      block += layer.activation_bytes(DType::bf16);
    }
  }
  // The two residual sums stand outside of the block's name; each keeps 2 s h bytes for the layer
  // norm that follows.
  CHECK(block == Bytes(s * h * 34 + 5 * 12 * s * s + 16 * s - 2 * 2 * s * h));
}

TEST_CASE("every name of a network is spelled once, and leads to a network that is there") {
  for (const PresetAlias& alias : network_aliases()) {
    INFO(alias.alias);
    CHECK(find_network_name(alias.alias).name == alias.name);
    CHECK(find_network_name(alias.name).verdict == PresetAnswer::Verdict::modelled);
  }
  for (const UnmodelledPreset& other : unmodelled_networks()) {
    INFO(other.name);
    CHECK(find_network_name(other.name).verdict == PresetAnswer::Verdict::not_modelled);
    CHECK(find_network_name(other.nearest).verdict == PresetAnswer::Verdict::modelled);
  }
}

TEST_CASE("preset arguments change shapes, unknown ones are errors") {
  CHECK(preset("resnet50", {{"num_classes", int64_t{10}}}).parameter_elements() ==
        25'557'032 - 990 * 2049);
  CHECK(preset("gpt2", {{"seq_len", int64_t{128}}}).layers.back().output == Shape{128, 50257});
  CHECK(std::holds_alternative<NetworkError>(describe_preset("gpt5")));
  CHECK(
      std::holds_alternative<NetworkError>(describe_preset("mlp", {{"image_size", int64_t{224}}})));
}

}  // namespace presets_test
