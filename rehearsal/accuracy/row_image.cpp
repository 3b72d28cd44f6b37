// Networks of images that no preset describes, layer by layer.
#include <fmt/format.h>

#include <array>

#include "rehearsal/accuracy/row_networks.hpp"

namespace lockstep::cli {

namespace {

/// A convolution without bias and its norm.
std::string convolution(int64_t in, int64_t out, int64_t kernel, int64_t stride,
                        int64_t groups = 1) {
  return fmt::format(
      "{{Conv2d: {{in_channels: {}, out_channels: {}, kernel_size: {}, stride: {}, padding: {}, "
      "groups: {}, bias: false}}}}, {{BatchNorm2d: {}}}",
      in, out, kernel, stride, kernel / 2, groups, out);
}

std::string stem_of_resnet(int64_t size) {
  return fmt::format(
      "model:\n  input: [3, {}, {}]\n  layers:\n    - Sequential: {{layers: [{}, ReLU]}}\n"
      "    - {{MaxPool2d: {{kernel_size: 3, stride: 2, padding: 1}}}}\n",
      size, size, convolution(3, 64, 7, 2));
}

/// Stages of bottlenecks: so many blocks, 64 channels and their doubles inside of them, four times
/// as many between them.
struct Bottlenecks {
  std::array<int64_t, 4> blocks{};
  std::array<int64_t, 4> strides{};
};

std::string bottlenecks_yaml(const Bottlenecks& network) {
  std::string yaml;
  int64_t in = 64;
  for (size_t stage = 0; stage < network.blocks.size(); ++stage) {
    const int64_t width = int64_t{64} << stage;
    const int64_t out = int64_t{256} << stage;
    for (int64_t block = 0; block < network.blocks[stage]; ++block) {
      const int64_t stride = block == 0 ? network.strides[stage] : 1;
      const std::string shortcut =
          block == 0 ? fmt::format(", shortcut: [{}]", convolution(in, out, 1, stride)) : "";
      yaml += fmt::format("    - Residual: {{layers: [{}, ReLU, {}, ReLU, {}]{}}}\n    - ReLU\n",
                          convolution(in, width, 1, 1), convolution(width, width, 3, stride),
                          convolution(width, out, 1, 1), shortcut);
      in = out;
    }
  }
  return yaml;
}

constexpr const char* classes_of_images =
    "    - {{AdaptiveAvgPool2d: 1}}\n    - Flatten\n    - {{Linear: [{}, 1000]}}\n";

}  // namespace

std::string mobilenet_yaml() {
  struct Stage {
    int64_t expansion, channels, blocks, stride;
  };
  constexpr std::array<Stage, 7> stages{{{1, 16, 1, 1},
                                         {6, 24, 2, 2},
                                         {6, 32, 3, 2},
                                         {6, 64, 4, 2},
                                         {6, 96, 3, 1},
                                         {6, 160, 3, 2},
                                         {6, 320, 1, 1}}};
  std::string yaml = fmt::format(
      "model:\n  input: [3, 224, 224]\n  layers:\n    - Sequential: {{layers: [{}, ReLU]}}\n",
      convolution(3, 32, 3, 2));
  int64_t in = 32;
  for (const Stage& stage : stages) {
    for (int64_t block = 0; block < stage.blocks; ++block) {
      const int64_t inner = in * stage.expansion;
      const int64_t stride = block == 0 ? stage.stride : 1;
      const std::string wider =
          stage.expansion > 1 ? convolution(in, inner, 1, 1) + ", ReLU, " : std::string();
      yaml += fmt::format("    - {}: {{layers: [{}{}, ReLU, {}]}}\n",
                          stride == 1 && in == stage.channels ? "Residual" : "Sequential", wider,
                          convolution(inner, inner, 3, stride, inner),
                          convolution(inner, stage.channels, 1, 1));
      in = stage.channels;
    }
  }
  return yaml +
         fmt::format("    - Sequential: {{layers: [{}, ReLU]}}\n", convolution(in, 1280, 1, 1)) +
         fmt::format(classes_of_images, 1280);
}

std::string regnet_yaml() {
  struct Stage {
    int64_t blocks, width;
  };
  constexpr std::array<Stage, 4> stages{{{2, 72}, {5, 216}, {13, 576}, {1, 1512}}};
  constexpr int64_t width_of_group = 24;
  std::string yaml = fmt::format(
      "model:\n  input: [3, 224, 224]\n  layers:\n    - Sequential: {{layers: [{}, ReLU]}}\n",
      convolution(3, 32, 3, 2));
  int64_t in = 32;
  for (const Stage& stage : stages) {
    const int64_t width = stage.width;
    for (int64_t block = 0; block < stage.blocks; ++block) {
      const int64_t stride = block == 0 ? 2 : 1;
      const std::string shortcut =
          block == 0 ? fmt::format(", shortcut: [{}]", convolution(in, width, 1, 2)) : "";
      const std::string excitation = fmt::format(
          "{{Multiply: {{layers: [{{AdaptiveAvgPool2d: 1}}, {{Conv2d: [{0}, {1}, 1]}}, ReLU, "
          "{{Conv2d: [{1}, {0}, 1]}}, Sigmoid]}}}}",
          width, (in + 2) / 4);
      yaml +=
          fmt::format("    - Residual: {{layers: [{}, ReLU, {}, ReLU, {}, {}]{}}}\n    - ReLU\n",
                      convolution(in, width, 1, 1),
                      convolution(width, width, 3, stride, width / width_of_group), excitation,
                      convolution(width, width, 1, 1), shortcut);
      in = width;
    }
  }
  return yaml + fmt::format(classes_of_images, in);
}

std::string ssd_yaml() {
  struct Map {
    int64_t in, inner, out, boxes, stride, padding;  ///< of the map behind the one of `boxes`
  };
  constexpr std::array<Map, 5> maps{{{1024, 256, 512, 4, 2, 1},
                                     {512, 256, 512, 6, 2, 1},
                                     {512, 128, 256, 6, 2, 1},
                                     {256, 128, 256, 6, 1, 0},
                                     {256, 128, 256, 4, 1, 0}}};
  constexpr int64_t outputs_of_box = 4 + 81;  // its place, and the classes of COCO
  std::string yaml = stem_of_resnet(300) + bottlenecks_yaml({{3, 4, 6, 0}, {1, 2, 1, 1}});
  for (const Map& map : maps) {
    const int64_t heads = map.boxes * outputs_of_box;
    yaml += fmt::format(
        "    - Concatenate: {{layers: [{{Conv2d: {{in_channels: {}, out_channels: {}, "
        "kernel_size: 3, padding: 1}}}}]}}\n",
        map.in, heads);
    yaml += fmt::format(
        "    - Sequential: {{layers: [{}, ReLU, {{Conv2d: {{in_channels: {}, out_channels: {}, "
        "kernel_size: 3, stride: {}, padding: {}, bias: false}}}}, {{BatchNorm2d: {}}}, ReLU]}}\n",
        convolution(map.in + heads, map.inner, 1, 1), map.inner, map.out, map.stride, map.padding,
        map.out);
  }
  return yaml + fmt::format("    - Flatten\n    - {{Linear: [256, {}]}}\n", 4 * outputs_of_box);
}

}  // namespace lockstep::cli
