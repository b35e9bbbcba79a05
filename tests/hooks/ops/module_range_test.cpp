// A C++ program with LAMINA_MODULE_RANGE in its modules; module_range_test.py checks what it emits.
#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "lamina_torch.h"

namespace {

struct FcImpl : torch::nn::Module {
  explicit FcImpl(int64_t out) { weight = register_parameter("weight", torch::ones({out, 4})); }
  at::Tensor forward(const at::Tensor& x) {
    LAMINA_MODULE_RANGE(*this);
    return x.matmul(weight.t());
  }
  at::Tensor weight;
};

struct Block : torch::nn::Module {
  Block() { fc = register_module("fc", std::make_shared<FcImpl>(4)); }
  at::Tensor forward(const at::Tensor& x) {
    lamina::ModuleRange range(*this);
    if (x.size(0) == 13) throw std::runtime_error("unlucky");
    return twice(fc->forward(x));
  }
  at::Tensor twice(const at::Tensor& x) {
    LAMINA_MODULE_RANGE(*this);
    return x + x;
  }
  std::shared_ptr<FcImpl> fc;
};

// A list of modules is no module that is called.
struct Layers : torch::nn::Module {
  explicit Layers(int count) {
    for (int i = 0; i < count; ++i) blocks.push_back(register_module(std::to_string(i), std::make_shared<Block>()));
  }
  std::vector<std::shared_ptr<Block>> blocks;
};

struct Net : torch::nn::Module {
  Net() { layers = register_module("layers", std::make_shared<Layers>(2)); }
  at::Tensor forward(at::Tensor x) {
    LAMINA_MODULE_RANGE(*this);
    for (auto& block : layers->blocks) x = block->forward(x);
    return other.forward(x);
  }
  std::shared_ptr<Layers> layers;
  FcImpl other{2};  // not registered
};

}  // namespace

int main() {
  auto net = std::make_shared<Net>();
  for (int i = 0; i < 2; ++i) net->forward(torch::ones({3, 4}));
  try {
    net->forward(torch::ones({13, 4}));
  } catch (const std::runtime_error&) {
  }
  std::thread([&] { net->layers->blocks[1]->forward(torch::ones({1, 4})); }).join();
  // Of two modules that may have the same address, each has its own shape.
  for (int64_t size : {5, 6}) std::make_shared<FcImpl>(size)->forward(torch::ones({1, 4}));
  std::puts("done");
}
