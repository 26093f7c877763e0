#include "copy_op.h"

namespace tunerd::test {
namespace {

const char* const kOp = R"({
  "op": "copy", "summary": "y = x", "dims": [{ "name": "rows" }, { "name": "cols" }], "dtypes": ["fp32"],
  "tensors": [
    { "name": "x", "shape": ["rows", "cols"], "dtype": "$dtype", "role": "input" },
    { "name": "y", "shape": ["rows", "cols"], "dtype": "$dtype", "role": "output" }
  ],
  "flops": "rows*cols", "fused_bytes": "bytes_x + bytes_y", "compute": "fp32", "tolerance": { "c": 1.0, "exact": true },
  "reference": { "source": "reference.cu", "entry": "copy_reference" }
})";

const char* const kReference = R"(
extern "C" __global__ void copy_reference(const float* x, double* y, double* y_err, long long rows, long long cols,
                                          long long ld_x) {
  const long long step = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < rows * cols; i += step) {
    y[i] = (double)x[i / cols * ld_x + i % cols];
    y_err[i] = 0.0;
  }
})";

wire::CompileResult compile(const gpu::Compiler& compiler, const std::string& arch, const std::string& source,
                            const std::string& entry) {
  wire::CompileJob job;
  job.name = job.entry = entry;
  job.source_name = entry + ".cu";
  job.source = source;
  job.options = fixed_nvrtc_options();
  job.arch = arch;
  auto result = compiler.compile(job);
  if (!result.ok) FAIL(result.error << "\n" << result.log);
  return result;
}

Argument argument(Argument::Kind kind, const std::string& name) {
  Argument out;
  out.kind = kind;
  out.name = name;
  if (kind == Argument::Kind::scalar) {
    out.type = "i64";
    out.expr = must(Expr::parse(name));
  }
  return out;
}

Recipe recipe_of(const CopyJob& what) {
  Recipe recipe;
  recipe.entry = "copy";
  const std::vector<Expr> shape{must(Expr::parse("rows")), must(Expr::parse("cols"))};
  recipe.tensors = {{"x", false, true, DType::fp32, shape, "ld_x", 4},
                    {"y", true, true, DType::fp32, shape, "ld_y", 4}};
  Argument workspace = argument(Argument::Kind::workspace, "workspace");
  workspace.expr = Expr(what.workspace_bytes);
  workspace.init = what.workspace_init;
  using Kind = Argument::Kind;
  recipe.arguments = {argument(Kind::tensor, "x"),    argument(Kind::tensor, "y"),    workspace,
                      argument(Kind::scalar, "rows"), argument(Kind::scalar, "cols"), argument(Kind::scalar, "ld_x"),
                      argument(Kind::scalar, "ld_y")};
  recipe.launch.grid = {must(Expr::parse("min(rows, 65536)")), Expr(1), Expr(1)};
  recipe.launch.block = {256, 1, 1};
  what.change(recipe);
  return recipe;
}

}  // namespace

std::string copy_kernel(const std::string& body) {
  return "extern \"C\" __global__ void __launch_bounds__(256, 1)\n"
         "copy(float* x, float* y, float* w, long long rows, long long cols, long long ld_x, long long ld_y) {\n"
         "  for (long long row = blockIdx.x; row < rows; row += gridDim.x) {\n"
         "    float* in = x + row * ld_x; float* out = y + row * ld_y;\n    " +
         body + "\n  }\n}\n";
}

wire::MeasureJob measure_job(const gpu::Compiler& compiler, const std::string& arch, const CopyJob& what) {
  static std::uint64_t next_id = 1;
  const Json document = Json::parse(kOp);
  const OpSpec op = must(parse_op(document, "copy"));
  const auto problem = [&](std::int64_t rows, std::int64_t cols, std::int64_t pad) {
    Json fields{{"rows", rows}, {"cols", cols}, {"dtype", "fp32"}};
    if (pad > 0) fields["ld_x"] = fields["ld_y"] = cols + pad;
    return must(make_problem(op, fields));
  };
  wire::MeasureJob job;
  job.id = next_id++;
  const Problem main = problem(what.rows, what.cols, 0);
  job.variant = "copy{}";
  job.problem_key = main.key(op);
  job.op = document;
  job.problem = main.to_json();
  job.recipe = recipe_of(what);
  job.cubin = compile(compiler, arch, copy_kernel(what.body), "copy").cubin;
  job.reference_entry = "copy_reference";
  job.reference_cubin = compile(compiler, arch, kReference, "copy_reference").cubin;
  job.edges = {problem(7, 999, 0).to_json(), problem(7, 1001, 24).to_json()};
  job.time = what.time;
  job.memory_limit_bytes = 32ll << 30;
  return job;
}

}  // namespace tunerd::test
