// A gemm-like answer for tests of the wire and the client: every kind of argument, an absent tensor, a check.
#pragma once

#include "wire/messages.h"

namespace tunerd {

inline Expr sample_expr(const char* text) { return Expr::parse(text).value(); }

inline Recipe sample_recipe() {
  Recipe recipe;
  recipe.entry = "sample_gemm";
  recipe.tensors = {
      {"x", false, true, DType::bf16, {sample_expr("m"), sample_expr("k")}, "ld_x", 16},
      {"w", false, true, DType::bf16, {sample_expr("n"), sample_expr("k")}, "ld_w", 16},
      {"bias", false, false, DType::bf16, {sample_expr("n")}, "", 2},
      {"y", true, true, DType::bf16, {sample_expr("m"), sample_expr("n")}, "ld_y", 2},
  };
  const auto tensor = [](const char* name) {
    Argument argument;
    argument.name = name;
    return argument;
  };
  const auto scalar = [](const char* name, const char* type, const char* expr) {
    Argument argument;
    argument.kind = Argument::Kind::scalar;
    argument.name = name;
    argument.type = type;
    argument.expr = sample_expr(expr);
    return argument;
  };
  Argument eps;
  eps.kind = Argument::Kind::scalar;
  eps.name = "eps";
  eps.type = "f32";
  eps.real = "eps";
  eps.real_default = 1e-6;
  Argument map;
  map.kind = Argument::Kind::tensor_map;
  map.name = "w";
  map.map.dims = {sample_expr("k"), sample_expr("n")};
  map.map.strides_bytes = {sample_expr("ld_w*2")};
  map.map.box = {64, 64};
  map.map.swizzle = "128B";
  Argument workspace;
  workspace.kind = Argument::Kind::workspace;
  workspace.name = "workspace";
  workspace.expr = sample_expr("ceildiv(m,32)*64");
  workspace.init = "zero_once";
  recipe.arguments = {tensor("x"),
                      map,
                      tensor("bias"),
                      tensor("y"),
                      scalar("m", "i64", "m"),
                      scalar("n", "i64", "n"),
                      scalar("k", "i64", "k"),
                      scalar("ld_x", "i64", "ld_x"),
                      scalar("ld_y", "i64", "ld_y"),
                      eps,
                      workspace};
  recipe.launch.grid = {sample_expr("ceildiv(m,32)"), sample_expr("ceildiv(n,64)"), sample_expr("1")};
  recipe.launch.block = {128, 1, 1};
  recipe.checks = {{sample_expr("k % 8 == 0"), "k must be a multiple of 8 for 16-byte loads"}};
  return recipe;
}

inline wire::GetAnswer sample_answer() {
  wire::GetAnswer answer;
  answer.op = "gemm";
  answer.problem = "gemm{m=64,n=1024,k=1024,dtype=bf16,epilogue=none}";
  answer.variant = "sample_gemm{bm=32,bn=64}";
  answer.quality = wire::Quality::near;
  answer.measured = true;
  answer.sol.t_sol_us = 1.25;
  answer.sol.bound = "memory";
  answer.sol.flops = 134217728;
  answer.sol.bytes = 2359296;
  answer.time_us = 2.5;
  answer.sol_fraction = 0.5;
  answer.device_class = "cuda/sm_90a/132sm/4800GBps/mig=none/700W";
  answer.arch = "sm_90a";
  answer.generation = 3;
  answer.kernel_digest = std::string(64, '0');
  answer.cubin_bytes = 4096;
  answer.problem_json = {{"op", "gemm"},
                         {"dims", {{"m", 64}, {"n", 1024}, {"k", 1024}}},
                         {"dtype", "bf16"},
                         {"attributes", {{"epilogue", "none"}}},
                         {"reals", Json::object()},
                         {"strides", Json::object()},
                         {"allow_nondeterministic", false}};
  answer.recipe = sample_recipe();
  answer.note = "near: gemm{m=32,…}";
  return answer;
}

}  // namespace tunerd
